package start_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/start"
	"tandem/identity"
	"tandem/trigger"
	"tandem/trigger/triggertest"
)

func cronNode(id, config string) trigger.Node {
	return trigger.Node{ID: id, Kind: "TRIGGER.CRON", Config: []byte(config)}
}

// at are the scheduled times that a node was started for, in the order of the starts.
func at(t *testing.T, s *triggertest.Shelf, node string) (list []time.Time) {
	t.Helper()
	for _, one := range s.Starts() {
		if one.Node != node {
			continue
		}
		when, err := time.Parse(time.RFC3339, gjson.GetBytes(one.Payload, "scheduled_time").Str)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, when)
	}
	return list
}

// TestCron_Year lets a year pass in two time zones, with restarts: short ones, in which nothing may be missed, and long ones, after which
// the policy says what is started.
func TestCron_Year(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // time begins at 2000-01-01T00:00:00Z
		shelf, p := triggertest.NewShelf(), identity.System("w")
		nodes := func(string, int64) []trigger.Node {
			return []trigger.Node{
				cronNode("berlin", `{"cron_expression":"30 2 * * *","timezone":"Europe/Berlin"}`),
				cronNode("york", `{"cron_expression":"0 */6 * * *","timezone":"America/New_York","misfire_policy":"run_all","max_missed_runs":2,"jitter_seconds":20}`),
				cronNode("skips", `{"cron_expression":"0 12 * * *","misfire_policy":"skip"}`),
			}
		}
		open := func() *trigger.Service {
			s := shelf.Service(start.Sources(), nodes, func(o *trigger.Options) { o.LongestNap = 30 * 24 * time.Hour })
			s.Start()
			return s
		}
		service := open()
		if err := service.Deploy(t.Context(), p, "flow", 1); err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(7, 7))
		end := time.Now().AddDate(1, 0, 0)
		var down [][2]time.Time // longer than is on time
		for restart := 0; time.Now().Before(end); restart++ {
			time.Sleep(time.Duration(random.Int64N(int64(5 * 24 * time.Hour))))
			service.Close()
			from := time.Now()
			if restart%3 == 0 {
				time.Sleep(time.Duration(random.Int64N(int64(40 * time.Hour))))
				down = append(down, [2]time.Time{from, time.Now()})
			} else {
				time.Sleep(time.Duration(random.Int64N(int64(20 * time.Second))))
			}
			if restart%5 == 0 { // the same again is put in force by the process that died before it could say so
				if err := shelf.Service(start.Sources(), nodes).Deploy(t.Context(), p, "other", int64(restart)); err != nil {
					t.Fatal(err)
				}
			}
			service = open()
			synctest.Wait()
		}
		service.Close()
		berlin, york, skips := at(t, shelf, "berlin"), at(t, shelf, "york"), at(t, shelf, "skips")
		for name, list := range map[string][]time.Time{"berlin": berlin, "york": york, "skips": skips} {
			list = slices.DeleteFunc(slices.Clone(list), func(time.Time) bool { return false })
			ofFlow := map[time.Time]int{}
			for _, one := range list {
				ofFlow[one]++
			}
			if len(ofFlow) < 200 {
				t.Errorf("%s has only %d times; this test would see too little", name, len(ofFlow))
			}
		}
		keys := map[string]bool{}
		for _, one := range shelf.Starts() {
			key := one.WorkflowID + one.Node + gjson.GetBytes(one.Payload, "scheduled_time").Str
			if keys[key] {
				t.Errorf("%s was started twice", key)
			}
			keys[key] = true
		}
		check(t, shelf, "berlin", end, down, func(missed []time.Time) []time.Time { return missed[max(0, len(missed)-1):] })
		check(t, shelf, "york", end, down, func(missed []time.Time) []time.Time { return missed[max(0, len(missed)-2):] })
		check(t, shelf, "skips", end, down, func([]time.Time) []time.Time { return nil })
	})
}

// check holds the starts of a node against what its schedule says, with the missed times as a policy leaves them.
func check(t *testing.T, shelf *triggertest.Shelf, node string, end time.Time, down [][2]time.Time, policy func([]time.Time) []time.Time) {
	t.Helper()
	place, hours, minute := time.UTC, []int{12}, 0
	for _, zone := range []struct {
		node, name string
		hours      []int
		minute     int
	}{{"berlin", "Europe/Berlin", []int{2}, 30}, {"york", "America/New_York", []int{0, 6, 12, 18}, 0}} {
		if zone.node == node {
			var err error
			if place, err = time.LoadLocation(zone.name); err != nil {
				t.Fatal(err)
			}
			hours, minute = zone.hours, zone.minute
		}
	}
	var all []time.Time
	began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for day := began.AddDate(0, 0, -1); day.Before(end); day = day.AddDate(0, 0, 1) {
		for _, hour := range hours {
			when := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, place)
			if l := when.In(place); l.Hour() != hour { // Berlin skips 02:30 on 26 March: its clocks go on at 01:00 UTC
				when = time.Date(2000, 3, 26, 1, 0, 0, 0, time.UTC)
			} else if earlier := when.Add(-time.Hour); earlier.In(place).Hour() == hour { // shown twice: the first
				when = earlier
			}
			if when.After(began) && when.Before(end.AddDate(0, 0, -10)) {
				all = append(all, when.UTC())
			}
		}
	}
	var want []time.Time
	for len(all) > 0 {
		i := slices.IndexFunc(down, func(d [2]time.Time) bool {
			return !all[0].Before(d[0].Add(-20*time.Second)) && all[0].Before(d[1].Add(-50*time.Second))
		})
		if i < 0 {
			want, all = append(want, all[0]), all[1:]
			continue
		}
		n := 0
		for n < len(all) && all[n].Before(down[i][1]) {
			n++
		}
		want, all = append(want, policy(all[:n])...), all[n:]
	}
	var got []time.Time
	for _, one := range shelf.Starts() {
		when, err := time.Parse(time.RFC3339, gjson.GetBytes(one.Payload, "scheduled_time").Str)
		if err != nil {
			t.Fatal(err)
		}
		if one.Node == node && one.WorkflowID == "flow" && when.Before(end.AddDate(0, 0, -10)) {
			got = append(got, when)
		}
	}
	if a, b := texts(want), texts(got); a != b {
		t.Errorf("%s:\nwant %s\ngot  %s", node, a, b)
	}
}

func texts(list []time.Time) string {
	var all []string
	for _, one := range list {
		all = append(all, one.UTC().Format("0102T15:04"))
	}
	return strings.Join(all, " ")
}

// TestCron_Redeploy moves a schedule to a new revision at the moment at which it is due: the time is started once.
func TestCron_Redeploy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf, p := triggertest.NewShelf(), identity.System("w")
		service := shelf.Service(start.Sources(), func(string, int64) []trigger.Node {
			return []trigger.Node{cronNode("c", `{"cron_expression":"* * * * *"}`)}
		})
		service.Start()
		defer service.Close()
		for revision := range int64(20) {
			if err := service.Deploy(context.WithoutCancel(t.Context()), p, "flow", revision+1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // to the very moment
		}
		time.Sleep(time.Second)
		var got []string
		for _, one := range at(t, shelf, "c") {
			got = append(got, one.Format("15:04"))
		}
		var want []string
		for m := 1; m <= 20; m++ {
			want = append(want, fmt.Sprintf("00:%02d", m))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})
}
