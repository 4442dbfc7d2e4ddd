package sandbox

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// echoArg makes the test binary a child that sends back every frame: what a round trip costs without any sandbox.
const echoArg = "echo-child"

func isEcho() bool { return len(os.Args) == 2 && os.Args[1] == echoArg }

func echo() error {
	r := bufio.NewReader(os.Stdin)
	for {
		b, err := readFrame(r)
		if err != nil {
			return err
		}
		if err := writeFrame(os.Stdout, append(frame(nil), b...)); err != nil {
			return err
		}
	}
}

// order is an object of about one kilobyte, as they travel between nodes.
func order() json.RawMessage {
	items := make([]string, 8)
	for i := range items {
		items[i] = fmt.Sprintf(`{"sku":"sku-%06d","name":"a thing of some sort, number %d","price":%d.5,"quantity":%d,"tags":["red","blue"]}`, i, i, 10+i, i+1)
	}
	return json.RawMessage(`{"id":"order-1","customer":{"name":"Ada","email":"ada@example.com"},"items":[` + strings.Join(items, ",") + `]}`)
}

const (
	orderPython = `def convert(order):
    total = sum(i["price"] * i["quantity"] for i in order["items"])
    return {**order, "total": total, "customer": order["customer"]["name"].upper()}
`
	orderJavaScript = `(order) => {
  const total = order.items.reduce((sum, i) => sum + i.price * i.quantity, 0);
  return { ...order, total, customer: order.customer.name.toUpperCase() };
}`
)

// BenchmarkConversion compares a warm conversion of a 1 KB object with a bare round trip of the same object over pipes
// to another process. The three take turns within one run, so that the ratios hold whatever else the machine does.
func BenchmarkConversion(b *testing.B) {
	cmd := exec.Command(executable(), echoArg)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	}()
	r := bufio.NewReader(out)
	sent := order()
	bare := func() error {
		if err := writeFrame(in, append(frame(nil), sent...)); err != nil {
			return err
		}
		_, err := readFrame(r)
		return err
	}
	pool := New(Options{Dir: cacheDir()})
	defer pool.Close()
	run := func(language Language, source string) func() error {
		call := Call{Tenant: "bench", Language: language, Source: source, Input: order()}
		return func() error {
			_, err := pool.Run(b.Context(), call)
			return err
		}
	}
	turns := []func() error{bare, run(Python, orderPython), run(JavaScript, orderJavaScript)}
	const batch = 100
	var spent [3]time.Duration
	for i, f := range turns {
		for range batch {
			if err := f(); err != nil {
				b.Fatalf("turn %d: %v", i, err)
			}
		}
	}
	n := 0
	for b.Loop() {
		n++
		for i, f := range turns {
			start := time.Now()
			for range batch {
				if err := f(); err != nil {
					b.Fatalf("turn %d: %v", i, err)
				}
			}
			spent[i] += time.Since(start)
		}
	}
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(n*batch) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(micros(spent[0]), "bare-µs")
	b.ReportMetric(micros(spent[1]), "python-µs")
	b.ReportMetric(micros(spent[2]), "javascript-µs")
	b.ReportMetric(float64(spent[1])/float64(spent[0]), "python-ratio")
	b.ReportMetric(float64(spent[2])/float64(spent[0]), "javascript-ratio")
}
