package postgres_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"tandem/store"
	"tandem/store/postgres"
)

// BenchmarkBelow starts an execution below a root that has so many open ones, and ends it. A start has to count them; it is reported apart from
// the end, beside the same start without a root.
func BenchmarkBelow(b *testing.B) {
	const limit = 10_000
	in := func(id string) *store.Append {
		a := begin(id)
		a.Below = &store.Below{Root: "root", Limit: limit}
		return a
	}
	for _, opened := range []int{0, 100, 1000, 9990} {
		b.Run(fmt.Sprint(opened), func(b *testing.B) {
			owned, err := postgres.OpenOwned(b.Context(), postgres.Options{URL: database(b), Shared: true})
			if err != nil {
				b.Fatal(err)
			}
			defer owned.Close()
			j := owned.Stores().Journal
			add := func(a *store.Append) time.Duration {
				began := time.Now()
				if err := j.Append(b.Context(), ann(), a); err != nil {
					b.Error(err)
				}
				return time.Since(began)
			}
			add(begin("root"))
			var filling sync.WaitGroup
			const together = 50
			for w := range together {
				filling.Go(func() {
					for n := w; n < opened; n += together {
						add(in(fmt.Sprint("open", n)))
					}
				})
			}
			filling.Wait()
			var below, alone time.Duration
			n := 0
			for b.Loop() {
				below += add(in(fmt.Sprint("below", n)))
				add(over(fmt.Sprint("below", n), 1))
				alone += add(begin(fmt.Sprint("alone", n)))
				n++
			}
			b.ReportMetric(float64(below.Microseconds())/float64(n), "µs/below")
			b.ReportMetric(float64(alone.Microseconds())/float64(n), "µs/alone")
		})
	}
}
