//! Connections: how many, for how long, and how they end.

use super::{App, log};
use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};

/// Serves until a signal comes, and what was asked until then.
pub(super) async fn serve(listener: TcpListener, router: Router, app: App) -> Result<()> {
    let listener = {
        listener.set_nonblocking(true).context("listening")?;
        tokio::net::TcpListener::from_std(listener).context("listening")?
    };
    let at = listener.local_addr().context("listening")?;
    log(format_args!("listening on http://{at}"));

    let places = Arc::new(Semaphore::new(app.limits.connections));
    let stop = watch::Sender::new(false);
    let accept = async {
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(_) => {
                    // The client went away, or there are too many open files: others will go.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                continue;
            };
            let connection = connect(stream, router.clone(), Arc::clone(&app), stop.subscribe());
            tokio::spawn(async move {
                connection.await;
                drop(place);
            });
        }
    };
    until(accept, signal()?).await;
    log("ending: what was asked is answered, and what was added is saved");
    stop.send_replace(true);
    drop(listener);
    // Every place is free again when every connection has ended.
    let all = u32::try_from(app.limits.connections).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(app.limits.time, places.acquire_many(all)).await;
    Ok(())
}

/// One connection, to its end.
async fn connect(stream: TcpStream, router: Router, app: App, mut stop: watch::Receiver<bool>) {
    // Answers are small, and whole when they are written.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut router = router.clone();
        async move { answer(&mut router, request).await }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(app.limits.time)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let stopped = async {
        let _ = stop.wait_for(|stop| *stop).await;
    };
    // How a connection ends is the client's business.
    if until(connection.as_mut(), stopped).await {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

async fn answer(
    router: &mut Router,
    request: Request<Incoming>,
) -> Result<axum::response::Response, Infallible> {
    tower_service::Service::call(router, request).await
}

/// Runs `work` until its end or that of `stop`; whether it was stopped.
async fn until<T>(work: impl Future<Output = T>, stop: impl Future<Output = ()>) -> bool {
    let (mut work, mut stop) = (pin!(work), pin!(stop));
    std::future::poll_fn(|context| {
        if work.as_mut().poll(context).is_ready() {
            return std::task::Poll::Ready(false);
        }
        stop.as_mut().poll(context).map(|()| true)
    })
    .await
}

/// The first signal that asks the process to end.
#[cfg(unix)]
fn signal() -> Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let watching = "watching for signals";
    let mut interrupt = signal(SignalKind::interrupt()).context(watching)?;
    let mut terminate = signal(SignalKind::terminate()).context(watching)?;
    Ok(async move {
        until(interrupt.recv(), async {
            terminate.recv().await;
        })
        .await;
    })
}

#[cfg(not(unix))]
fn signal() -> Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
