package storetest

import (
	"fmt"
	"sync"
	"testing"

	"tandem/engine"
	"tandem/fault"
	"tandem/store"
)

func testRevisions(t *testing.T, s store.Stores) {
	p := tenant(t)
	save := func(w store.SaveWorkflow) (store.Workflow, bool) {
		t.Helper()
		got, created, err := s.Workflows.Save(t.Context(), p, w)
		ok(t, err)
		return got, created
	}
	w := store.SaveWorkflow{ID: "w", Name: "Orders", Description: "d", IconURL: "i", Tags: []string{"a", "b"}, Version: "1.0", Parent: "v",
		Hash: "h1", Definition: []byte("one"), Time: 10}
	got, created := save(w)
	equal(t, "created", true, created)
	want := store.Workflow{Workspace: p.Workspace, ID: "w", Name: "Orders", Description: "d", IconURL: "i",
		Tags: []string{"a", "b"}, Version: "1.0", Parent: "v",
		Revision: 1, RevisionHash: "h1", DeploymentStatus: store.DeploymentDraft, CreatedBy: "ann", UpdatedBy: "ann", Created: 10, Updated: 10}
	equal(t, "first", want, got)
	w.Time = 11
	got, created = save(w)
	equal(t, "created again", false, created)
	equal(t, "same content", want, got)
	w.Hash, w.Definition, w.Name, w.Tags = "h2", []byte("two"), "Orders 2", nil
	got, _ = save(w)
	want.Name, want.Tags, want.Revision, want.RevisionHash, want.Updated = "Orders 2", []string{}, 2, "h2", 11
	equal(t, "second", want, got)
	w.Hash, w.Definition = "h1", []byte("one")
	got, created = save(w)
	equal(t, "back to the first", []any{true, int64(3)}, []any{created, got.Revision})
	for number, definition := range map[int64]string{0: "one", 1: "one", 2: "two", 3: "one"} {
		r := must[store.Revision](t)(s.Workflows.Revision(t.Context(), p, "w", number))
		equal(t, fmt.Sprintf("revision %d", number), definition, string(r.Definition))
	}
	equal(t, "by hash", int64(3), must[store.Revision](t)(s.Workflows.RevisionByHash(t.Context(), p, "w", "h1")).Number)
	page := must[store.RevisionPage](t)(s.Workflows.Revisions(t.Context(), p, "w", store.Page{Size: 2}))
	equal(t, "revisions", store.RevisionPage{Total: 3, Revisions: []store.Revision{
		{Workspace: p.Workspace, WorkflowID: "w", Number: 3, Hash: "h1", CreatedBy: "ann", Created: 11},
		{Workspace: p.Workspace, WorkflowID: "w", Number: 2, Hash: "h2", CreatedBy: "ann", Created: 11}}}, page)
	for _, number := range []int64{4, -1} {
		_, err := s.Workflows.Revision(t.Context(), p, "w", number)
		wantCode(t, "unknown revision", err, fault.NotFound)
	}
	_, err := s.Workflows.RevisionByHash(t.Context(), p, "w", "h9")
	wantCode(t, "unknown hash", err, fault.NotFound)
	_, err = s.Workflows.Revision(t.Context(), p, "unknown", 0)
	wantCode(t, "unknown workflow", err, fault.NotFound)
	_, err = s.Workflows.Revisions(t.Context(), p, "unknown", store.Page{})
	wantCode(t, "revisions of an unknown workflow", err, fault.NotFound)

	for expect, code := range map[int64]fault.Code{-1: fault.Conflict, 2: fault.Conflict, 9: fault.Conflict} {
		w.Expect, w.Hash = expect, "h9"
		_, _, err := s.Workflows.Save(t.Context(), p, w)
		wantCode(t, fmt.Sprintf("expecting %d", expect), err, code)
	}
	_, _, err = s.Workflows.Save(t.Context(), p, store.SaveWorkflow{ID: "new", Hash: "h", Expect: 1})
	wantCode(t, "expecting a revision of nothing", err, fault.Conflict)
	_, _, err = s.Workflows.Save(t.Context(), p, store.SaveWorkflow{ID: "new"})
	wantCode(t, "no hash", err, fault.Invalid)
	// Of many who saw the same revision, one saves.
	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		wg.Go(func() {
			_, _, errs[i] = s.Workflows.Save(t.Context(), p, store.SaveWorkflow{ID: "w", Hash: fmt.Sprint("r", i), Expect: 3})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			wantCode(t, "racing save", err, fault.Conflict)
		}
	}
	equal(t, "savers", 1, won)
}

func testWorkflowList(t *testing.T, s store.Stores) {
	p := tenant(t)
	const n = 12
	for i := range n {
		tags := []string{"all"}
		if i%3 == 0 {
			tags = append(tags, "third", "100%")
		}
		_, _, err := s.Workflows.Save(t.Context(), p, store.SaveWorkflow{ID: fmt.Sprintf("w%02d", i), Name: fmt.Sprintf("Flow %d", i),
			Description: "Über 50% 订单", Tags: tags, Hash: "h", Time: 7})
		ok(t, err)
	}
	deployed := store.Deployment{WorkflowID: "w03", Revision: 1, Hash: "h"}
	ok(t, s.Triggers.Prepare(t.Context(), p, deployed))
	ok(t, s.Triggers.PutInForce(t.Context(), p, deployed))
	total := func(q store.WorkflowQuery) int {
		t.Helper()
		return must[store.WorkflowPage](t)(s.Workflows.List(t.Context(), p, q)).Total
	}
	equal(t, "all", n, total(store.WorkflowQuery{}))
	equal(t, "text", 3, total(store.WorkflowQuery{Text: "fLOW 1"}))
	equal(t, "text of an id", 1, total(store.WorkflowQuery{Text: "W07"}))
	equal(t, "text beyond ASCII", n, total(store.WorkflowQuery{Text: "ÜBER"}))
	equal(t, "Chinese text", n, total(store.WorkflowQuery{Text: "订单"}))
	equal(t, "no wildcards", 0, total(store.WorkflowQuery{Text: "F%1"}))
	equal(t, "name", 1, total(store.WorkflowQuery{Name: "Flow 1"}))
	equal(t, "prefix", 10, total(store.WorkflowQuery{Prefix: "w0"}))
	equal(t, "prefix is not a pattern", 0, total(store.WorkflowQuery{Prefix: "w_"}))
	equal(t, "prefix in the same letters", 0, total(store.WorkflowQuery{Prefix: "W0"}))
	equal(t, "not the prefix", 2, total(store.WorkflowQuery{NotPrefix: "w0"}))
	equal(t, "both", 1, total(store.WorkflowQuery{Prefix: "w1", NotPrefix: "w10"}))
	equal(t, "tag", 4, total(store.WorkflowQuery{Tags: []string{"third"}}))
	equal(t, "tags", 4, total(store.WorkflowQuery{Tags: []string{"all", "100%"}}))
	equal(t, "no such tag", 0, total(store.WorkflowQuery{Tags: []string{"all", "hir"}}))
	equal(t, "deployed", 1, total(store.WorkflowQuery{DeploymentStatus: store.DeploymentDeployed}))
	equal(t, "draft", n-1, total(store.WorkflowQuery{DeploymentStatus: store.DeploymentDraft}))
	var got []string
	for number := 1; number <= 3; number++ {
		for _, w := range must[store.WorkflowPage](t)(s.Workflows.List(t.Context(), p,
			store.WorkflowQuery{Page: store.Page{Number: number, Size: 5}})).Workflows {
			got = append(got, w.ID)
		}
	}
	equal(t, "pages", []string{"w00", "w01", "w02", "w03", "w04", "w05", "w06", "w07", "w08", "w09", "w10", "w11"}, got)
}

// testSources keeps the texts of revisions as they were written.
func testSources(t *testing.T, s store.Stores) {
	p := tenant(t)
	save := func(hash, format, text string) (int64, bool) {
		t.Helper()
		w, created, err := s.Workflows.Save(t.Context(), p,
			store.SaveWorkflow{ID: "w", Name: "n", Hash: hash, Definition: []byte(hash),
				Source: store.Source{Format: format, Text: []byte(text)}, Time: 1})
		ok(t, err)
		return w.Revision, created
	}
	for i, c := range []struct {
		what, hash, format, text string
		revision                 int64
		created                  bool
	}{
		{"no text", "h1", "", "", 1, true},
		{"the first text of the content", "h1", "yaml", "# one\n", 1, false},
		{"the same text", "h1", "yaml", "# one\n", 1, false},
		{"JSON of the same content", "h1", "json", "{\n}", 1, false},
		{"no text again", "h1", "", "", 1, false},
		{"other comments", "h1", "yaml", "# two\n", 2, true},
		{"other content", "h2", "json", "{\n1}", 3, true},
		{"other content without a text", "h3", "", "", 4, true},
	} {
		revision, created := save(c.hash, c.format, c.text)
		equal(t, fmt.Sprint(i, " ", c.what), []any{c.revision, c.created}, []any{revision, created})
	}
	for number, want := range map[int64]store.Source{1: {Format: "yaml", Text: []byte("# one\n")},
		2: {Format: "yaml", Text: []byte("# two\n")}, 3: {Format: "json", Text: []byte("{\n1}")}, 4: {}} {
		equal(t, fmt.Sprint("source ", number), want, must[store.Source](t)(s.Workflows.Source(t.Context(), p, "w", number)))
	}
	_, err := s.Workflows.Source(t.Context(), p, "w", 5)
	wantCode(t, "unknown revision", err, fault.NotFound)
	ok(t, s.Workflows.Delete(t.Context(), p, "w", 5))
	revision, created := save("h3", "yaml", "# back\n")
	equal(t, "back", []any{int64(4), false}, []any{revision, created})
	equal(t, "text of what is back", "# back\n", string(must[store.Source](t)(s.Workflows.Source(t.Context(), p, "w", 4)).Text))
}

// testDrafts keeps definitions for tests, which count in no statistics.
func testDrafts(t *testing.T, s store.Stores) {
	p := tenant(t)
	_, _, err := s.Workflows.Save(t.Context(), p, store.SaveWorkflow{ID: "w", Name: "n", Hash: "h1", Definition: []byte("saved"), Time: 1})
	ok(t, err)
	ok(t, s.Workflows.KeepDraft(t.Context(), p, store.Draft{WorkflowID: "w", Execution: "e1", Hash: "h2",
		Definition: []byte("draft"), Time: 7}))
	ok(t, s.Workflows.KeepDraft(t.Context(), p, store.Draft{WorkflowID: "w", Execution: "e2", Hash: "h1",
		Definition: []byte("never"), Time: 8}))
	r := must[store.Revision](t)(s.Workflows.RevisionByHash(t.Context(), p, "w", "h2"))
	equal(t, "draft", store.Revision{Workspace: p.Workspace, WorkflowID: "w", Hash: "h2", Definition: []byte("draft"), CreatedBy: "ann", Created: 7}, r)
	equal(t, "a revision comes first", "saved", string(must[store.Revision](t)(s.Workflows.RevisionByHash(t.Context(), p, "w", "h1")).Definition))
	_, err = s.Workflows.RevisionByHash(t.Context(), p, "v", "h2")
	wantCode(t, "of another workflow", err, fault.NotFound)
	equal(t, "revisions", 1, must[store.RevisionPage](t)(s.Workflows.Revisions(t.Context(), p, "w", store.Page{})).Total)
	ok(t, s.Workflows.DropDraft(t.Context(), p, "e2"))
	wantCode(t, "dropped twice", s.Workflows.DropDraft(t.Context(), p, "e2"), fault.NotFound)

	before := must[store.Workflow](t)(s.Workflows.Get(t.Context(), p, "w"))
	started(t, s, p, "e1", func(a *store.Append) {
		a.Create.WorkflowID, a.Create.TriggerType, a.Create.RevisionHash = "w", store.TriggerTest, "h2"
	})
	a := next("e1", 1)
	a.Change = &store.Change{Status: engine.StatusError, Ended: 9, DurationMS: 5, Credits: 2}
	mustAppend(t, s, p, a)
	equal(t, "the workflow after a test", before, must[store.Workflow](t)(s.Workflows.Get(t.Context(), p, "w")))
	list := must[store.ExecutionPage](t)(s.Executions.List(t.Context(), p,
		store.ExecutionQuery{WorkflowID: "w", Statuses: []engine.Status{engine.StatusError}}))
	equal(t, "it is listed", []any{1, 1}, []any{list.Total, len(list.Executions)})
}

func testWorkflowDelete(t *testing.T, s store.Stores) {
	p := tenant(t)
	w := store.SaveWorkflow{ID: "w", Name: "n", Hash: "h1", Definition: []byte("d"), Time: 1}
	_, _, err := s.Workflows.Save(t.Context(), p, w)
	ok(t, err)
	started(t, s, p, "e1", func(a *store.Append) { a.Create.WorkflowID, a.Create.Revision = "w", 1 })
	wantCode(t, "with an unfinished execution", s.Workflows.Delete(t.Context(), p, "w", 5), fault.Conflict)
	must[store.Workflow](t)(s.Workflows.Get(t.Context(), p, "w"))
	a := next("e1", 1)
	a.Change = &store.Change{Status: engine.StatusSuccess}
	mustAppend(t, s, p, a)
	ok(t, s.Workflows.Delete(t.Context(), p, "w", 5))
	wantCode(t, "deleted twice", s.Workflows.Delete(t.Context(), p, "w", 5), fault.NotFound)
	_, err = s.Workflows.Get(t.Context(), p, "w")
	wantCode(t, "deleted", err, fault.NotFound)
	_, err = s.Workflows.Revision(t.Context(), p, "w", 0)
	wantCode(t, "newest of a deleted one", err, fault.NotFound)
	equal(t, "list", 0, must[store.WorkflowPage](t)(s.Workflows.List(t.Context(), p, store.WorkflowQuery{})).Total)
	wantCode(t, "deployed after deletion", s.Triggers.Prepare(t.Context(), p, store.Deployment{WorkflowID: "w", Revision: 1}), fault.NotFound)
	// What executions are pinned to stays.
	equal(t, "pinned", "d", string(must[store.Revision](t)(s.Workflows.Revision(t.Context(), p, "w", 1)).Definition))
	b := first("e2")
	b.Create.WorkflowID = "w"
	wantCode(t, "start of a deleted workflow", s.Journal.Append(t.Context(), p, b), fault.NotFound)
	back, created, err := s.Workflows.Save(t.Context(), p, w)
	ok(t, err)
	equal(t, "back", []any{false, int64(1), int64(1)}, []any{created, back.Revision, back.Statistics.TotalRuns})
	mustAppend(t, s, p, b)
}

func testStatistics(t *testing.T, s store.Stores) {
	p := tenant(t)
	_, _, err := s.Workflows.Save(t.Context(), p, store.SaveWorkflow{ID: "w", Hash: "h"})
	ok(t, err)
	stats := func() store.Workflow {
		t.Helper()
		return must[store.Workflow](t)(s.Workflows.Get(t.Context(), p, "w"))
	}
	start := func(id string, at int64) {
		t.Helper()
		started(t, s, p, id, func(a *store.Append) { a.Create.WorkflowID, a.Time = "w", at })
	}
	change := func(id string, after uint64, c store.Change) {
		t.Helper()
		a := next(id, after)
		a.Change = &c
		mustAppend(t, s, p, a)
	}
	start("e1", 100)
	equal(t, "one run", store.Statistics{TotalRuns: 1}, stats().Statistics)
	equal(t, "last", []any{engine.StatusRunning, int64(100)}, []any{stats().LastStatus, stats().LastExecution})
	change("e1", 1, store.Change{Status: engine.StatusSuccess, Ended: 150, DurationMS: 40, Credits: 2})
	start("e2", 200)
	change("e2", 1, store.Change{Status: engine.StatusError, Ended: 260, DurationMS: 60, Credits: 0.5})
	equal(t, "two runs", store.Statistics{TotalRuns: 2, AverageDurationMS: 50, TotalCredits: 2.5, LastSuccess: 150}, stats().Statistics)
	change("e2", 2, store.Change{Status: engine.StatusRunning, DurationMS: 60, Credits: 0.5})
	equal(t, "one revived", store.Statistics{TotalRuns: 2, AverageDurationMS: 40, TotalCredits: 2, LastSuccess: 150}, stats().Statistics)
	change("e2", 3, store.Change{Status: engine.StatusSuccess, Ended: 300, DurationMS: 80, Credits: 1})
	equal(t, "one ended twice", store.Statistics{TotalRuns: 2, AverageDurationMS: 60, TotalCredits: 3, LastSuccess: 300},
		stats().Statistics)
	// A late word of an older execution is not the last status.
	change("e1", 2, store.Change{Status: engine.StatusCanceled, DurationMS: 40, Credits: 2})
	equal(t, "last status", engine.StatusSuccess, stats().LastStatus)
}
