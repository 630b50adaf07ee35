//! Who is connected to the shim: the daemon that started it by the socket that is its standard input, and every daemon
//! after that by the socket in its folder. Lines of JSON both ways. Nobody is waited for.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use minder_proto::turn::folder::{News, Order, SOCKET};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{SockType, getsockopt, sockopt};

/// Most connections at once; the oldest goes when another comes.
const LINKS_MAX: usize = 8;
/// Longest order.
const ORDER_MAX: usize = 4096;

/// Everybody who is connected, and the socket for others.
#[derive(Debug)]
pub struct Links {
    listener: UnixListener,
    /// There was no descriptor for somebody who waits to be taken. The listener stays readable, and is no reason to wake up.
    short: bool,
    all: Vec<Link>,
}

#[derive(Debug)]
struct Link {
    stream: UnixStream,
    partial: Vec<u8>,
}

impl Links {
    /// Listens in the folder that this process is in.
    pub fn open() -> io::Result<Self> {
        // One that lay there is of a shim that is gone: this one holds the lock.
        let _ = std::fs::remove_file(SOCKET);
        let listener = UnixListener::bind(SOCKET)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, short: false, all: Vec::new() })
    }

    /// Takes standard input, if it is a socket.
    pub fn take_input(&mut self) -> io::Result<()> {
        let input = io::stdin();
        if getsockopt(&input, sockopt::SockType).is_ok_and(|kind| kind == SockType::Stream) {
            self.add(UnixStream::from(input.as_fd().try_clone_to_owned()?));
            // Else the connection would be open for as long as this process lives, whatever becomes of the link.
            nix::unistd::dup2_stdin(File::open("/dev/null")?)?;
        }
        Ok(())
    }

    /// What to wait for.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let listener = (!self.short).then(|| self.listener.as_fd());
        listener.into_iter().chain(self.all.iter().map(|link| link.stream.as_fd()))
    }

    /// True while somebody waits who could not be taken, so that it must be tried again after a while.
    pub fn is_short(&self) -> bool {
        self.short
    }

    /// Takes who comes, and tells a new one what there is to know.
    pub fn accept(&mut self, news: Option<&News>) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    self.add(stream);
                    if let (Some(news), Some(link)) = (news, self.all.last_mut()) {
                        link.tell(&line(news));
                    }
                }
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(e) => {
                    self.short = e.kind() != ErrorKind::WouldBlock;
                    return;
                }
            }
        }
    }

    fn add(&mut self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_ok() {
            if self.all.len() == LINKS_MAX {
                self.all.remove(0);
            }
            self.all.push(Link { stream, partial: Vec::new() });
        }
    }

    /// Every order that has come. Who has gone is forgotten, and so is who says what is no order.
    pub fn orders(&mut self) -> Vec<Order> {
        let mut orders = Vec::new();
        self.all.retain_mut(|link| link.orders(&mut orders));
        orders
    }

    /// Waits until somebody says that the shim is done, and gives whether the disk need not have anything of it. Nobody who
    /// is connected, or not within this time: it has to.
    pub fn let_go(&mut self, within: Duration) -> bool {
        let until = Instant::now() + within;
        loop {
            let leave = |order| if let Order::Leave { keep } = order { Some(keep) } else { None };
            if let Some(keep) = self.orders().into_iter().find_map(leave) {
                return !keep;
            }
            let left = until.saturating_duration_since(Instant::now());
            if self.all.is_empty() || left.is_zero() {
                return false;
            }
            let wanted = |fd| PollFd::new(fd, PollFlags::POLLIN);
            let mut fds: Vec<PollFd> = self.all.iter().map(|link| link.stream.as_fd()).map(wanted).collect();
            let left = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            match poll(&mut fds, left) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Tells everybody who listens. Who has no room for a line does not.
    pub fn tell(&mut self, news: &News) {
        let line = line(news);
        self.all.iter_mut().for_each(|link| link.tell(&line));
    }
}

impl Link {
    fn tell(&mut self, line: &[u8]) {
        let _ = self.stream.write_all(line);
    }

    /// False once there is nobody any more.
    fn orders(&mut self, orders: &mut Vec<Order>) -> bool {
        let mut bytes = [0; 512];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(read) => self.partial.extend_from_slice(&bytes[..read]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
            while let Some(end) = self.partial.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.partial.drain(..=end).collect();
                match serde_json::from_slice(&line) {
                    Ok(order) => orders.push(order),
                    Err(_) => return false,
                }
            }
            if self.partial.len() > ORDER_MAX {
                return false;
            }
        }
    }
}

fn line(news: &News) -> Vec<u8> {
    let mut line = serde_json::to_vec(news).expect("news are plain data");
    line.push(b'\n');
    line
}
