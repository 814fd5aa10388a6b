//! The routes between sites.

use topolane_fabric::Fabric;

/// The route of least latency between every two sites, link by link.
#[derive(Debug, Clone)]
pub struct WanRoutes {
    sites: usize,
    bandwidth: Vec<f64>,
    /// One-way latency in seconds; infinite if there is no route.
    latency: Vec<f64>,
    /// The links of each route, as indices into `bandwidth`.
    links: Vec<Vec<usize>>,
    /// The most bytes in flight on one connection.
    window: Option<f64>,
}

impl WanRoutes {
    /// Returns the routes of a fabric. `window`, in bytes, limits every connection, as in TCP.
    pub fn new(fabric: &Fabric, window: Option<f64>) -> WanRoutes {
        let sites = fabric.sites() as usize;
        let mut wan = WanRoutes {
            sites,
            bandwidth: Vec::new(),
            latency: vec![f64::INFINITY; sites * sites],
            links: vec![Vec::new(); sites * sites],
            window,
        };
        for site in 0..sites {
            wan.latency[site * sites + site] = 0.0;
        }
        for (link, (_, (a, b), latency, bandwidth)) in fabric.wans().enumerate() {
            wan.bandwidth.push(bandwidth);
            for (from, to) in [(a as usize, b as usize), (b as usize, a as usize)] {
                if latency < wan.latency[from * sites + to] {
                    wan.latency[from * sites + to] = latency;
                    wan.links[from * sites + to] = vec![link];
                }
            }
        }
        wan.close();
        wan
    }

    /// Computes all shortest routes (Floyd and Warshall).
    fn close(&mut self) {
        let n = self.sites;
        for over in 0..n {
            for from in 0..n {
                for to in 0..n {
                    let way = self.latency[from * n + over] + self.latency[over * n + to];
                    if way < self.latency[from * n + to] {
                        self.latency[from * n + to] = way;
                        let (first, second) =
                            (&self.links[from * n + over], &self.links[over * n + to]);
                        self.links[from * n + to] = [first.as_slice(), second].concat();
                    }
                }
            }
        }
    }

    /// The number of sites.
    pub fn sites(&self) -> usize {
        self.sites
    }

    /// One-way latency between two sites in seconds; infinite if no link connects them.
    pub fn latency(&self, a: usize, b: usize) -> f64 {
        self.latency[a * self.sites + b]
    }

    /// The numbers of the links on the route between two sites.
    pub fn links(&self, a: usize, b: usize) -> &[usize] {
        &self.links[a * self.sites + b]
    }

    /// Bandwidth of every link in each direction, in bytes per second.
    pub fn bandwidth(&self) -> &[f64] {
        &self.bandwidth
    }

    /// Bandwidth of the narrowest link between two sites, in bytes per second; infinite within one site.
    pub fn narrowest(&self, a: usize, b: usize) -> f64 {
        self.links(a, b).iter().map(|&link| self.bandwidth[link]).fold(f64::INFINITY, f64::min)
    }

    /// The limit of one connection in bytes.
    pub fn window(&self) -> Option<f64> {
        self.window
    }
}
