package limits_test

import (
	"fmt"
	"testing"
	"time"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/limits"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// started keeps an execution that has ended, and tells a service of it as a host does.
func started(t *testing.T, s store.Stores, p identity.Principal, id string, at time.Time, tell ...*limits.Service) {
	t.Helper()
	ms := at.UnixMilli()
	if err := s.Journal.Append(t.Context(), p, &store.Append{Execution: id, Time: ms, Body: []byte("row"), Create: &store.Execution{ID: id, Status: engine.StatusSuccess, User: "ann", Created: ms, Ended: ms}}); err != nil {
		t.Fatal(err)
	}
	for _, service := range tell {
		service.Recorded(p.Workspace, host.Row{Seq: 1, Time: ms, Facts: []engine.Fact{engine.ExecutionCreated{}}})
		service.Recorded(p.Workspace, host.Row{Seq: 1, Time: ms, Facts: []engine.Fact{engine.ExecutionCreated{Depth: 1}}}) // a child
		service.Recorded(p.Workspace, host.Row{Seq: 2, Time: ms, Facts: []engine.Fact{engine.ExecutionStarted{}}})
	}
}

// A quota counts what was started before this process, since then, and what was removed; it says when there is room again, and has it then.
func TestQuota_Counts(t *testing.T) {
	t.Parallel()
	db := sqlitetest.Open(t)
	s, p := db.Stores(), identity.Principal{Workspace: "ws", User: "ann"}
	// The process has begun with the database; what counts as started before it has an earlier time. Both must be of one day.
	now := time.Now().UTC()
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	for n := range 3 {
		started(t, s, p, fmt.Sprint("before", n), day.Add(time.Duration(n)*time.Millisecond))
	}
	clock := now
	service := limits.New(limits.Options{Stores: s, Now: func() time.Time { return clock }})
	if err := service.Set(t.Context(), p, api.LimitSettings{ExecutionsPerDay: 5, ExecutionsPerMonth: 50}); err != nil {
		t.Fatal(err)
	}
	enter := func() error {
		leave, err := service.Enter(t.Context(), p, limits.Start{})
		if err == nil {
			leave(false)
		}
		return err
	}
	used := func() int64 {
		t.Helper()
		u, err := service.Usage(t.Context(), p)
		if err != nil || u.ExecutionsToday != u.ExecutionsThisMonth {
			t.Fatal(u, err)
		}
		return u.ExecutionsToday
	}
	if used() != 3 || enter() != nil {
		t.Fatalf("used %d, %v", used(), enter())
	}
	started(t, s, p, "since0", clock, service)
	if _, err := s.Upkeep.Remove(t.Context(), p, store.Removal{Execution: "since0"}); err != nil { // it was started all the same
		t.Fatal(err)
	}
	if _, err := s.Upkeep.Remove(t.Context(), p, store.Removal{Execution: "before0"}); err != nil {
		t.Fatal(err)
	}
	leave, err := service.Enter(t.Context(), p, limits.Start{Triggered: true}) // the fifth is about to be started
	if err != nil || used() != 5 {
		t.Fatalf("used %d, %v", used(), err)
	}
	err = enter()
	f := fault.From(err)
	if wait, _ := f.Details["retry_after"].(int); f.Code != fault.QuotaExhausted || !f.Retryable || wait < 1 || time.Duration(wait)*time.Second > day.AddDate(0, 0, 1).Sub(clock)+time.Second {
		t.Errorf("over the quota: %v %v", err, f.Details)
	}
	leave(false) // it was not
	if err := enter(); err != nil {
		t.Errorf("after one has given up: %v", err)
	}
	// Somebody who begins now counts the same from what is on disk.
	other := limits.New(limits.Options{Stores: s, Now: func() time.Time { return clock.Add(time.Second) }})
	if u, err := other.Usage(t.Context(), p); err != nil || u.ExecutionsToday != 3 {
		t.Errorf("on disk from before the process: %+v, %v", u, err)
	}
	clock = day.AddDate(0, 0, 1)
	if err := enter(); err != nil || clock.Day() != 1 && used0(service, t, p) != 0 {
		t.Errorf("on the next day: %v", err)
	}
}

func used0(service *limits.Service, t *testing.T, p identity.Principal) int64 {
	t.Helper()
	u, err := service.Usage(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return u.ExecutionsToday
}
