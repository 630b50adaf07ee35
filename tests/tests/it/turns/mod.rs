//! Turns: what a shim does with a harness, a theme a module.

mod ends;
