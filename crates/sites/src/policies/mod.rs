mod inter_site_traffic;
mod make_room;
mod predicted_loss;
mod stay;

pub use inter_site_traffic::InterSiteTraffic;
pub use make_room::MakeRoom;
pub use predicted_loss::PredictedLoss;
pub use stay::Stay;
