//! The ways between sites.

use topolane_fabric::Fabric;

/// For every two sites the way of least latency, link by link.
#[derive(Debug, Clone)]
pub struct Wan {
    sites: usize,
    bandwidth: Vec<f64>,
    /// Seconds one way, infinite where there is no way.
    latency: Vec<f64>,
    /// Links of the way, as indices of `bandwidth`.
    links: Vec<Vec<usize>>,
    /// Bytes that one connection may have under way.
    window: Option<f64>,
}

impl Wan {
    /// The ways of a fabric; `window` in bytes limits every connection, as TCP's does.
    pub fn new(fabric: &Fabric, window: Option<f64>) -> Wan {
        let sites = fabric.sites() as usize;
        let mut wan = Wan {
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

    /// Floyd and Warshall's all shortest ways.
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

    /// Number of sites.
    pub fn sites(&self) -> usize {
        self.sites
    }

    /// Seconds one way between two sites; infinite where no link joins them.
    pub fn latency(&self, a: usize, b: usize) -> f64 {
        self.latency[a * self.sites + b]
    }

    /// The links between two sites, by number.
    pub fn links(&self, a: usize, b: usize) -> &[usize] {
        &self.links[a * self.sites + b]
    }

    /// Bytes a second of every link, in each direction.
    pub fn bandwidth(&self) -> &[f64] {
        &self.bandwidth
    }

    /// Bytes a second of the narrowest link between two sites; infinite inside one.
    pub fn narrowest(&self, a: usize, b: usize) -> f64 {
        self.links(a, b).iter().map(|&link| self.bandwidth[link]).fold(f64::INFINITY, f64::min)
    }

    /// What limits one connection, bytes.
    pub fn window(&self) -> Option<f64> {
        self.window
    }
}
