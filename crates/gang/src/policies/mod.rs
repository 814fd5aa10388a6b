mod adaptive;
mod batch;
mod free;
mod gang;

pub use adaptive::Adaptive;
pub use batch::Batch;
pub use free::Free;
pub use gang::Gang;
