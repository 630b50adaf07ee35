//! Hooks of harnesses: what is put into their settings.

pub mod json_text;
