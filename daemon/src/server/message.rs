//! `message.*`.

use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::RpcModule;
use minder_proto::error::{Fault, Kind};
use minder_proto::event::{Message, Receipt};
use minder_proto::hold::Hold;
use minder_proto::id::{MessageId, Party};
use minder_proto::record::Channel;
use minder_proto::rpc::{
    Ack, AckAnswer, Drop, Receipt as GetReceipt, ReceiptAnswer, Retry, Send, SendAnswer, Take, TakeAnswer,
};
use minder_proto::snapshot;

use super::context::{Context, Origin, once};
use super::method;
use crate::delivery::mailbox::bury;
use crate::delivery::rules;
use crate::session::{self, Lookup};
use crate::store::Txn;

/// Longest wait of one call for a receipt; the client asks again.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

/// Registers the family.
pub fn register(module: &mut RpcModule<Context>) {
    method::register(module, |call: Send, ctx: Arc<Context>, peer| async move {
        send(&ctx, call, Origin::peer(peer)).await
    });
    method::register(
        module,
        |call: GetReceipt, ctx: Arc<Context>, _| async move { receipt(&ctx, call).await },
    );
    method::register(module, |call: Take, ctx: Arc<Context>, peer| async move {
        take(&ctx, call, Origin::peer(peer)).await
    });
    method::register(module, |call: Ack, ctx: Arc<Context>, peer| async move {
        ack(&ctx, call, Origin::peer(peer)).await
    });
    method::register(module, |call: Retry, ctx: Arc<Context>, peer| async move {
        retry(&ctx, call, Origin::peer(peer)).await
    });
    method::register(module, |call: Drop, ctx: Arc<Context>, peer| async move {
        drop_message(&ctx, call, Origin::peer(peer)).await
    });
}

/// A message that a reply answers: where it is, and who sent it.
struct Answered {
    at: Lookup,
    from: Party,
    seq: u64,
    thread: Option<MessageId>,
}

async fn answered(ctx: &Context, end: &str) -> Result<Answered, Fault> {
    let at = ctx.find_message(end).await?;
    let receipt = ctx.delivery.receipt(at).await?;
    let seq = receipt.history.first().map_or(0, |l| l.seq);
    let dir = snapshot::party_dir(ctx.store.home(), at.to);
    let message = tokio::task::spawn_blocking(move || snapshot::message(&dir, seq)).await;
    let message = message.ok().and_then(Result::ok).flatten();
    let thread = message.as_ref().and_then(|m| m.thread).or(Some(at.id));
    Ok(Answered { at, from: receipt.from, seq, thread })
}

/// Refuses a text that is no message.
pub(super) fn check_body(body: &str, most: usize) -> Result<(), Fault> {
    if body.len() > most {
        let message = format!("a message has at most {most} bytes, this one {}", body.len());
        return Err(Fault::new(Kind::TooLarge, message));
    }
    if body.is_empty() {
        return Err(Fault::new(Kind::InvalidParams, "a message without text"));
    }
    if body.contains('\0') {
        return Err(Fault::new(Kind::InvalidState, "a message cannot hold a NUL byte"));
    }
    Ok(())
}

/// Accepts a message.
pub(super) async fn send(ctx: &Context, call: Send, origin: Origin) -> Result<SendAnswer, Fault> {
    check_body(&call.body, ctx.store.config().message.max_bytes)?;
    let replies = match &call.reply_to {
        Some(end) => Some(answered(ctx, end).await?),
        None => None,
    };
    let home = ctx.store.home().clone();
    let delivery = Arc::clone(&ctx.delivery);
    ctx.store
        .write(move |txn| {
            let who = origin.who(call.caller.as_ref(), txn.state(), &home)?;
            let from = who.party()?;
            let to = match (&call.to, &replies) {
                (Some(text), _) if text == "@operator" => Party::Operator,
                (Some(text), _) => {
                    Party::Session(session::selected_one(txn.state(), &home, text, who.session())?)
                }
                (None, Some(r)) => r.from,
                (None, None) => return Err(Fault::new(Kind::InvalidParams, "to whom?")),
            };
            if to == Party::Minder {
                return Err(Fault::new(
                    Kind::Refused,
                    "minder itself does not read: a notice has no sender to answer",
                ));
            }
            if let Some(r) = &replies
                && r.at.to != from
            {
                let text = format!("message {} was not sent to you", r.at.id.short());
                return Err(Fault::new(Kind::NotOwner, text));
            }
            let scope = format!("{from}/message.send");
            let content = (to, call.body.clone(), call.class, call.reply_to.clone());
            let key = call.key.clone();
            let run = |txn: &mut Txn<'_>| {
                let now = txn.now();
                let message = Message {
                    id: MessageId::now(),
                    from,
                    about: None,
                    body: call.body,
                    class: call.class,
                    key: call.key,
                    reply_to: replies.as_ref().map(|r| r.at.id),
                    thread: replies.as_ref().and_then(|r| r.thread),
                    cause: None,
                    hops: 0,
                    expires: call.expires_s.map(|s| now.plus(Duration::from_secs(s))),
                };
                let (id, seq) = txn.post(to, message)?;
                if let Some(r) = &replies {
                    answer(txn, r, seq)?;
                }
                let hold = to
                    .session()
                    .and_then(|s| rules::hold(&txn.state().session(s)?.record, delivery.has_waiter(s)));
                let receipt = if hold.is_some() { Receipt::Held } else { Receipt::Queued };
                let reason = hold.map(|h: Hold| h.to_string());
                Ok(SendAnswer { id, to, seq, receipt, reason, duplicate: false })
            };
            let (answer, duplicate) = once(txn, &scope, key.as_deref(), &content, run)?;
            Ok(SendAnswer { duplicate, ..answer })
        })
        .await
}

/// The message that a reply answers is answered, and with that settled.
fn answer(txn: &mut Txn<'_>, replies: &Answered, seq: u64) -> Result<(), Fault> {
    let reason = format!("reply {seq}");
    let entry = txn.inbox(replies.at.to)?.queue.get(replies.at.id).cloned();
    match entry {
        Some(entry) => {
            let channel = entry.channel.clone();
            let (id, attempt) = (entry.id, entry.attempt);
            txn.receipt(replies.at.to, id, Receipt::Answered, Some(reason), attempt, channel.as_deref())
        }
        None => txn.answered(replies.at.to, replies.at.id, replies.seq, reason),
    }
}

async fn receipt(ctx: &Context, call: GetReceipt) -> Result<ReceiptAnswer, Fault> {
    let at = ctx.find_message(&call.id).await?;
    match call.wait_s {
        None => ctx.delivery.receipt(at).await,
        Some(s) => {
            let within = Duration::from_secs(s).min(WAIT_MAX);
            // A stop must not wait for this call; the client asks the next daemon.
            tokio::select! {
                answer = ctx.delivery.receipt_when_settled(at, within) => answer,
                () = ctx.process.stop.cancelled() => Err(Fault::new(Kind::Unavailable, "the daemon is going down")),
            }
        }
    }
}

/// Whose mailbox a call is about: the caller's, or the person's.
async fn own(
    ctx: &Context,
    caller: Option<minder_proto::caller::Caller>,
    origin: &Origin,
) -> Result<Party, Fault> {
    let (home, origin) = (ctx.store.home().clone(), origin.clone());
    ctx.store.glance(move |state| origin.who(caller.as_ref(), state, &home)?.party()).await?
}

async fn take(ctx: &Context, call: Take, origin: Origin) -> Result<TakeAnswer, Fault> {
    let party = own(ctx, call.caller, &origin).await?;
    let conn = match origin {
        Origin::Peer { conn, .. } => conn,
        Origin::Spooled { .. } => 0,
    };
    ctx.delivery.take(party, conn, call.key).await
}

/// Somebody has read a message of their own.
pub(super) async fn ack(ctx: &Context, call: Ack, origin: Origin) -> Result<AckAnswer, Fault> {
    let party = own(ctx, call.caller, &origin).await?;
    let at = ctx.find_message(&call.id).await?;
    if at.to != party {
        return Err(Fault::new(Kind::NotOwner, format!("message {} is not yours", at.id.short())));
    }
    let receipt = ctx.delivery.ack(at).await?;
    Ok(AckAnswer { id: at.id, receipt })
}

/// Its recipient, its sender, and the person may act on a waiting message.
async fn theirs(
    ctx: &Context,
    caller: Option<minder_proto::caller::Caller>,
    origin: &Origin,
    end: &str,
) -> Result<Lookup, Fault> {
    let party = own(ctx, caller, origin).await?;
    let at = ctx.find_message(end).await?;
    let from = ctx
        .store
        .read(move |state| {
            let entry = state.inbox(at.to).and_then(|i| i.queue.get(at.id));
            entry.map(|e| e.brief.as_ref().map(|b| b.from))
        })
        .await?;
    let Some(from) = from else {
        return Err(waits_no_more(at.id));
    };
    if party == Party::Operator || party == at.to || from == Some(party) {
        return Ok(at);
    }
    Err(Fault::new(Kind::NotOwner, format!("message {} is neither from you nor for you", at.id.short())))
}

fn waits_no_more(id: MessageId) -> Fault {
    Fault::new(Kind::Gone, format!("message {} does not wait any more", id.short()))
}

async fn retry(ctx: &Context, call: Retry, origin: Origin) -> Result<AckAnswer, Fault> {
    let at = theirs(ctx, call.caller, &origin, &call.id).await?;
    if let Some(session) = at.to.session() {
        // What its harness shows by now is not given again.
        ctx.delivery.look_for_evidence(session).await;
    }
    let delivery = Arc::clone(&ctx.delivery);
    let tried = ctx
        .store
        .write(move |txn| {
            let entry = txn.inbox(at.to)?.queue.get(at.id).cloned();
            let Some(entry) = entry else { return Ok(None) };
            let channel = at.to.session().and_then(|s| txn.state().session(s));
            let channel = channel.map_or(Channel::Mailbox, |s| s.record.channel.clone());
            // What was handed and not seen is tried again now; what waits is looked at now.
            let again = rules::tried_again(&channel, &entry, txn.now());
            // What is half typed would be typed twice.
            if let Some((receipt, reason)) = again.filter(|_| !delivery.is_given_now(at.to, at.id)) {
                let by = reason.and(entry.channel.as_deref());
                txn.receipt(at.to, at.id, receipt, reason.map(str::to_owned), entry.attempt, by)?;
                return Ok(Some(receipt));
            }
            Ok(Some(entry.receipt))
        })
        .await?;
    if let Some(session) = at.to.session() {
        ctx.delivery.try_now(session);
    }
    let receipt = match tried {
        Some(receipt) => receipt,
        // It waited when it was asked for.
        None => ctx.delivery.receipt(at).await?.receipt,
    };
    Ok(AckAnswer { id: at.id, receipt })
}

async fn drop_message(ctx: &Context, call: Drop, origin: Origin) -> Result<AckAnswer, Fault> {
    let at = theirs(ctx, call.caller, &origin, &call.id).await?;
    ctx.store
        .write_on_files(move |txn, files| {
            let entry = txn.inbox(at.to)?.queue.get(at.id).cloned();
            let Some(entry) = entry else { return Err(waits_no_more(at.id)) };
            bury(txn, files, at.to, &[entry], "dropped", "it was dropped")?;
            Ok(AckAnswer { id: at.id, receipt: Receipt::Dead })
        })
        .await
}
