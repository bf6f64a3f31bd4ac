//! How the engine helps models that do not call tools reliably.

mod prefix;
