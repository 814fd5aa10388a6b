// topolane-scheduler is kube-scheduler with one plugin more: see docs/explanation/kubernetes.md.
package main

import (
	"os"
	"runtime/debug"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"topolane/scheduler/plugin"
)

// garbage is how much memory may wait for the collector, in percent of what is in use, unless GOGC says otherwise. Most of what is in
// use is the pods and nodes that are watched, so Go's usual 100 would double the process on a large cluster.
const garbage = 40

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(plugin.Name, plugin.New))))
}
