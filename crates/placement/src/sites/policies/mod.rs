mod inter_site_traffic;
mod predicted_loss;
mod stay;

pub use inter_site_traffic::InterSiteTraffic;
pub use predicted_loss::PredictedLoss;
pub use stay::Stay;
