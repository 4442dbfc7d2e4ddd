package postgres_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"tandem/store/postgres"
)

// BenchmarkAppend adds rows to journals, one execution at a time and fifty at once.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 50} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			db, err := postgres.Open(b.Context(), database(b))
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			j := db.Stores().Journal
			var n atomic.Int64
			b.SetParallelism(max(1, writers/2)) // of two processors
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				id := fmt.Sprint("e", n.Add(1))
				if err := j.Append(b.Context(), ann(), begin(id)); err != nil {
					b.Error(err)
					return
				}
				for after := uint64(1); pb.Next(); after++ {
					if err := j.Append(b.Context(), ann(), follow(id, after)); err != nil {
						b.Error(err)
						return
					}
				}
			})
			transactions, calls := db.Commits()
			b.ReportMetric(float64(calls)/float64(transactions), "appends/commit")
		})
	}
}
