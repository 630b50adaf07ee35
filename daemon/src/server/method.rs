//! From the wire to a method and back: parameters by name, read strictly, and failures with their kind.
//!
//! A method is a function from its parameters, the shared context and the peer to its answer; which name it has and
//! what it answers is said by its parameter type (`minder_proto::rpc::Call`).

use std::future::Future;
use std::sync::Arc;

use jsonrpsee::RpcModule;
use jsonrpsee::types::{ErrorObjectOwned, Params};
use minder_proto::error::{Fault, FaultData, Kind};
use minder_proto::rpc::Call;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Peer;

/// Registers the method that `C` names.
///
/// # Panics
/// If a method of that name is registered already: a fault of the program, met at its start.
pub fn register<C, X, F, R>(module: &mut RpcModule<X>, method: F)
where
    C: Call + DeserializeOwned + Send + 'static,
    C::Answer: Serialize + Clone + Send + 'static,
    X: Send + Sync + 'static,
    F: Fn(C, Arc<X>, Peer) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<C::Answer, Fault>> + Send,
{
    let registered = module.register_async_method(C::METHOD, move |params, context, extensions| {
        let method = method.clone();
        async move {
            let call = parse(&params).map_err(|fault| error(&fault))?;
            let peer =
                extensions.get::<Peer>().expect("the connection notes its peer in every request").clone();
            method(call, context, peer).await.map_err(|fault| error(&fault))
        }
    });
    registered.expect("each method is registered once");
}

/// Reads parameters by name; none at all are the same as none that are set. A field that this build does not know comes
/// from a newer caller, and is refused as such: what it asks for would not be done.
fn parse<C: DeserializeOwned>(params: &Params<'_>) -> Result<C, Fault> {
    let text = params.as_str().filter(|text| *text != "null").unwrap_or("{}");
    if !text.trim_start().starts_with('{') {
        return Err(Fault::new(Kind::InvalidParams, "parameters are given by name, as an object"));
    }
    serde_json::from_str(text).map_err(|e| {
        let why = e.to_string();
        if why.starts_with("unknown field") {
            return Fault::new(
                Kind::Version,
                format!("the caller asks for what this daemon does not know: {why}"),
            )
            .hint("minder daemon restart");
        }
        Fault::new(Kind::InvalidParams, why)
    })
}

/// A failure as JSON-RPC has it.
pub fn error(fault: &Fault) -> ErrorObjectOwned {
    let data = FaultData::from(&fault.clone().or_way_out());
    ErrorObjectOwned::owned(fault.kind.code(), fault.message.as_str(), Some(data))
}

#[cfg(test)]
mod tests {
    use minder_proto::rpc::{Stop, WatchList};

    use super::*;

    fn list(params: Option<&str>) -> Result<Option<String>, Kind> {
        parse::<WatchList>(&Params::new(params)).map(|s| s.of).map_err(|f| f.kind)
    }

    #[test]
    fn parameters_are_read_strictly() {
        for none in [None, Some("null"), Some("{}"), Some(" {\"of\":null}")] {
            assert_eq!(list(none), Ok(None), "{none:?}");
        }
        assert_eq!(list(Some(r#"{"of":"api"}"#)), Ok(Some("api".into())));
        for bad in ["[]", "[true]", "7", r#"{"of":7}"#] {
            assert_eq!(list(Some(bad)), Err(Kind::InvalidParams), "{bad}");
        }
        assert_eq!(list(Some(r#"{"of":"api","drain":true}"#)), Err(Kind::Version));
        // What this build has nothing for is refused, and not left out.
        let drain = parse::<Stop>(&Params::new(Some(r#"{"drain":true}"#)));
        assert_eq!(drain.map(drop).map_err(|f| f.kind), Err(Kind::Version));
    }
}
