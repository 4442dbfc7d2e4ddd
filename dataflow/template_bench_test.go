package dataflow_test

import (
	"encoding/json"
	"testing"
	"time"

	"tandem/dataflow"
)

// benchParams is a parameter object as people write them: nested, five placeholders, about 900 bytes.
const benchParams = `{
  "method": "POST",
  "url": "https://api.example.com/v1/projects/{{project_id}}/forecasts",
  "headers": {"Content-Type": "application/json", "X-Request-Source": "tandem", "Accept-Language": "zh-CN,en;q=0.8"},
  "body": {
    "datasource_id": "{{step_2.outputs.datasource_id}}",
    "model": {"name": "load-forecast", "version": 3, "threshold": 0.8750, "features": ["temperature", "humidity", "weekday", "holiday"]},
    "window": {"from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z", "step_minutes": 15, "timezone": "Asia/Shanghai"},
    "first_row": "{{step_4.outputs.rows[0].values}}",
    "notify": {"channel": "ops", "message": "Forecast for {{city_name}} uses {{{step_4.output.record_count}}} records", "urgent": false, "retries": 2},
    "limits": {"max_rows": 100000, "max_seconds": 420, "sample": [1, 2, 3, 5, 8, 13]}
  },
  "follow_redirects": true,
  "timeout_seconds": 30
}`

func benchLayers(tb testing.TB) *dataflow.Layers {
	tb.Helper()
	l, err := dataflow.New(dataflow.Start{ExecutionID: "x1", WorkflowID: "w1",
		Initial: json.RawMessage(`{"project_id":"proj_001","file_path":"/data/load.csv","city_name":"杭州"}`)})
	if err != nil {
		tb.Fatal(err)
	}
	for _, s := range []dataflow.Step{
		{Seq: 2, NodeID: "step_1", NodeName: "check", Output: payload(`{"is_valid":true,"row_count":1000}`)},
		{Seq: 3, NodeID: "step_2", NodeName: "register", Output: payload(`{"datasource_id":"ds_001","datasource_name":"my_datasource"}`)},
		{Seq: 4, NodeID: "step_4", NodeName: "get_data", Output: payload(
			`{"rows":[{"at":"2026-01-01","values":{"mw":[1.5,2.25,3],"ok":true}},{"at":"2026-01-02","values":null}],"record_count":1000}`)},
	} {
		if _, err := l.Sync(s); err != nil {
			tb.Fatal(err)
		}
	}
	return l
}

func BenchmarkResolve(b *testing.B) {
	l := benchLayers(b)
	t, err := dataflow.Compile(json.RawMessage(benchParams))
	if err != nil {
		b.Fatal(err)
	}
	r := dataflow.Request{View: dataflow.View{AsOf: 10}, StepID: "step_5"}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := t.Resolve(l, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJSONDecode(b *testing.B) {
	raw := []byte(benchParams)
	b.ReportAllocs()
	for b.Loop() {
		var v map[string]any
		if err := json.Unmarshal(raw, &v); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkResolveRatio runs both in turns, so that a busy machine slows both. The promise is x_json ≤ 2.
func BenchmarkResolveRatio(b *testing.B) {
	l := benchLayers(b)
	t, err := dataflow.Compile(json.RawMessage(benchParams))
	if err != nil {
		b.Fatal(err)
	}
	r := dataflow.Request{View: dataflow.View{AsOf: 10}}
	var resolving, decoding time.Duration
	for b.Loop() {
		start := time.Now()
		if _, _, err := t.Resolve(l, r); err != nil {
			b.Fatal(err)
		}
		mid := time.Now()
		var v map[string]any
		if err := json.Unmarshal([]byte(benchParams), &v); err != nil {
			b.Fatal(err)
		}
		resolving += mid.Sub(start)
		decoding += time.Since(mid)
	}
	b.ReportMetric(float64(resolving)/float64(decoding), "x_json")
}

func BenchmarkSync(b *testing.B) {
	l := benchLayers(b)
	out := payload(`{"rows":[{"at":"2026-01-01","values":{"mw":[1.5,2.25,3],"ok":true}},{"at":"2026-01-02","values":null}],"record_count":1000}`)
	seq := uint64(10)
	b.ReportAllocs()
	for b.Loop() {
		seq++
		if _, err := l.Sync(dataflow.Step{Seq: seq, NodeID: "step_4", Output: out}); err != nil {
			b.Fatal(err)
		}
		if seq%256 == 0 {
			l.Forget(seq)
		}
	}
}

// BenchmarkIteration is what one iteration of a loop costs: open, two steps with two fields each, close.
func BenchmarkIteration(b *testing.B) {
	l := benchLayers(b)
	out := payload(`{"x":1,"y":"text"}`)
	vars := map[string]json.RawMessage{"item": json.RawMessage(`{"id":1}`), "index": json.RawMessage("0")}
	seq := uint64(10)
	b.ReportAllocs()
	for b.Loop() {
		seq++
		open(b, l, "each[0]", seq, vars)
		sync(b, l, dataflow.Step{Seq: seq, Scope: "each[0]", NodeID: "a", NodeName: "first", Output: out})
		sync(b, l, dataflow.Step{Seq: seq, Scope: "each[0]", NodeID: "b", NodeName: "second", Output: out})
		closeScope(b, l, "each[0]", seq)
		if seq%256 == 0 {
			l.Forget(seq)
		}
	}
}
