package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
)

// storeTimeout is how long the store may take to answer a scraper.
const storeTimeout = 5 * time.Second

// Backlog counts unfinished executions when it is asked: those of one workspace, or, without one, all.
func Backlog(stores store.Stores, workspace string) prometheus.Collector {
	return &backlog{stores: stores, workspace: workspace,
		executions: prometheus.NewDesc("tandem_executions", "Unfinished executions by status, as the store has them.", []string{"status"}, nil)}
}

type backlog struct {
	stores     store.Stores
	executions *prometheus.Desc
	workspace  string
}

// Describe implements prometheus.Collector.
func (u *backlog) Describe(c chan<- *prometheus.Desc) { c <- u.executions }

// Collect implements prometheus.Collector. The statuses are counted by an index, so it costs little however many there are.
func (u *backlog) Collect(c chan<- prometheus.Metric) {
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	counts := map[engine.Status]int{}
	workspaces, err := u.stores.Workspaces.List(ctx, identity.System(u.workspace))
	for _, status := range engine.Statuses() {
		if status.Final() {
			continue
		}
		counts[status] = 0
		for _, w := range workspaces {
			if err != nil {
				break
			}
			var page store.ExecutionPage
			page, err = u.stores.Executions.List(ctx, identity.System(w.ID),
				store.ExecutionQuery{Statuses: []engine.Status{status}, Page: store.Page{Size: 1}})
			counts[status] += page.Total
		}
	}
	if err != nil {
		c <- prometheus.NewInvalidMetric(u.executions, err)
		return
	}
	for status, n := range counts { // order does not matter: what is sent is sorted
		c <- prometheus.MustNewConstMetric(u.executions, prometheus.GaugeValue, float64(n), string(status))
	}
}

// Storage says what the data directory takes up, when it is asked: nothing when the store does not know.
func Storage(upkeep store.Upkeep) prometheus.Collector {
	return &stored{upkeep: upkeep, bytes: prometheus.NewDesc("tandem_storage_bytes",
		"What the data directory takes up: database (of which free holds nothing), log, blobs, copies.", []string{"part"}, nil)}
}

type stored struct {
	upkeep store.Upkeep
	bytes  *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (u *stored) Describe(c chan<- *prometheus.Desc) { c <- u.bytes }

// Collect implements prometheus.Collector.
func (u *stored) Collect(c chan<- prometheus.Metric) {
	if u.upkeep == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	space, err := u.upkeep.Space(ctx, identity.System(""))
	if err != nil {
		c <- prometheus.NewInvalidMetric(u.bytes, err)
		return
	}
	// The order does not matter: what is sent is sorted.
	for part, n := range map[string]int64{"database": space.Database, "free": space.Free, "log": space.Log, "blobs": space.Blobs, "copies": space.Copies} {
		c <- prometheus.MustNewConstMetric(u.bytes, prometheus.GaugeValue, float64(n), part)
	}
}
