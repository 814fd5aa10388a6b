mod inter_site_traffic;
mod make_room;
mod paper;
mod place_all;
mod predicted_time;
mod processors;
mod stay;

pub use inter_site_traffic::InterSiteTraffic;
pub use make_room::MakeRoom;
pub use paper::Paper;
pub use predicted_time::PredictedTime;
pub use processors::Processors;
pub use stay::Stay;
