package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tandem/api"
	"tandem/client"
	"tandem/loopback"
	"tandem/store/sqlite/sqlitetest"
)

// The environment variable that makes TestTriggers_KillNine longer: how many deliveries are sent.
const deliveriesVariable = "TANDEM_DELIVERIES"

// TestTriggers_KillNine sends deliveries from many senders, each of which tries again until it is answered, and kills the server in the
// middle. Each delivery has one execution then, and every answer that was given names that one.
func TestTriggers_KillNine(t *testing.T) {
	t.Parallel()
	count, senders, kills := 400, 40, 3
	if text := os.Getenv(deliveriesVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s: %q is not a number of deliveries", deliveriesVariable, text)
		}
		count, senders = n, 100
	}
	dir, addr := sqlitetest.Dir(t), loopback.FreeAddress(t)
	var process atomic.Pointer[exec.Cmd]
	begin := func() {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestCrash_Process$")
		cmd.Env = append(os.Environ(), crashDir+"="+dir, crashAddr+"="+addr)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "serving ") {
		}
		go io.Copy(io.Discard, out) //nolint:errcheck // it ends with the process
		process.Store(cmd)
	}
	kill := func() {
		cmd := process.Load()
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
	}
	begin()
	t.Cleanup(kill)
	c, err := client.New(client.Options{URL: "http://" + addr, Token: crashToken})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if _, err := c.CreateWorkflow(ctx, []byte(hookFlow("many", `{"webhook_path":"/in"}`, `,{"id":"end","name":"end","description":"d","type":"CALL","subtype":"EMPTY","configurations":{"pass_through":true}}`, `{"from_node":"hook","to_node":"end"}`)), false); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Deploy(ctx, "many"); err != nil {
		t.Fatal(err)
	}

	var sent, answered atomic.Int64
	// enough is closed when so many are answered that the server is killed.
	enough := make([]chan struct{}, kills)
	for k := range enough {
		enough[k] = make(chan struct{})
	}
	told := make([]string, count)
	var all sync.WaitGroup
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	for range senders {
		all.Go(func() {
			for n := sent.Add(1) - 1; n < int64(count); n = sent.Add(1) - 1 {
				for told[n] == "" && ctx.Err() == nil {
					told[n] = sendOnce(ctx, web, addr, n)
				}
				so := answered.Add(1)
				for k := range enough {
					if so == int64((k+1)*count/(kills+1)) {
						close(enough[k])
					}
				}
				if so%10 == 0 { // a sender that did not hear the answer
					if again := sendOnce(ctx, web, addr, n); again != "" && again != told[n] {
						t.Errorf("delivery %d was answered with %s and then with %s", n, told[n], again)
					}
				}
			}
		})
	}
	for k := range kills {
		select {
		case <-enough[k]:
		case <-ctx.Done():
		}
		kill()
		begin()
	}
	all.Wait()
	if ctx.Err() != nil {
		t.Fatal("the senders were not answered in time")
	}

	byKey, executions := map[string]string{}, map[string]bool{}
	for page := 1; ; page++ {
		list, err := c.Deliveries(ctx, client.DeliveryQuery{WorkflowID: "many", Page: page, PageSize: 500})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list.Deliveries {
			if byKey[d.Key] != "" || executions[d.ExecutionID] || d.Decision != "started" {
				t.Errorf("delivery %+v beside %q", d, byKey[d.Key])
			}
			byKey[d.Key], executions[d.ExecutionID] = d.ExecutionID, true
		}
		if len(list.Deliveries) < 500 {
			break
		}
	}
	same(t, len(byKey), count)
	for n, id := range told {
		if byKey[fmt.Sprint("delivery-", n)] != id {
			t.Errorf("delivery %d was answered with %q and is %q", n, id, byKey[fmt.Sprint("delivery-", n)])
		}
	}
	found, err := c.Executions(ctx, client.ExecutionQuery{WorkflowID: "many", PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	same(t, found.TotalCount, count)
	// The stream of each execution ends with it.
	var next atomic.Int64
	for range senders {
		all.Go(func() {
			for n := next.Add(1) - 1; n < int64(count); n = next.Add(1) - 1 {
				if err := c.Watch(ctx, told[n], "", client.VocabularyExecution, func(api.Event) error { return nil }); err != nil {
					t.Errorf("execution %s: %v", told[n], err)
				}
			}
		})
	}
	all.Wait()
	found, err = c.Executions(ctx, client.ExecutionQuery{WorkflowID: "many", Statuses: []string{"SUCCESS"}, PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	same(t, found.TotalCount, count)
}

// sendOnce sends a delivery and returns the execution that it was answered with; empty: it was not answered.
func sendOnce(ctx context.Context, web *http.Client, addr string, n int64) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/hooks/many/in", strings.NewReader(fmt.Sprintf(`{"n":%d}`, n)))
	if err != nil {
		return ""
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", fmt.Sprint("delivery-", n))
	w, err := web.Do(r)
	if err != nil {
		return ""
	}
	defer w.Body.Close()
	var got api.Received
	if raw, err := io.ReadAll(w.Body); err != nil || w.StatusCode != http.StatusAccepted || json.Unmarshal(raw, &got) != nil {
		return ""
	}
	return got.ExecutionID
}
