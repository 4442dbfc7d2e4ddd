package outbound

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// BenchmarkDo compares a guarded call with a bare one over the same loopback server; each run reports both.
func BenchmarkDo(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, `{"ok":true}`) }))
	b.Cleanup(server.Close)
	list, err := ParseAllow("127.0.0.0/8")
	if err != nil {
		b.Fatal(err)
	}
	c := New(Options{Allow: list})
	b.Cleanup(c.Close)
	bare := &http.Client{Transport: &http.Transport{}}
	r := get(b, server.URL)
	guarded := func() error {
		response, err := c.Do(b.Context(), r)
		if err != nil {
			return err
		}
		_, err = response.ReadAll()
		return err
	}
	plain := func() error {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			return err
		}
		response, err := bare.Do(request)
		if err != nil {
			return err
		}
		if _, err := io.ReadAll(response.Body); err != nil {
			return err
		}
		return response.Body.Close()
	}
	var spent [2]time.Duration
	b.ReportAllocs()
	for b.Loop() {
		for i, call := range []func() error{plain, guarded} {
			begun := time.Now()
			if err := call(); err != nil {
				b.Fatal(err)
			}
			spent[i] += time.Since(begun)
		}
	}
	b.ReportMetric(float64(spent[0].Microseconds())/float64(b.N), "bare-µs/op")
	b.ReportMetric(float64(spent[1].Microseconds())/float64(b.N), "guarded-µs/op")
	b.ReportMetric(float64(spent[1])/float64(spent[0]), "ratio")
}
