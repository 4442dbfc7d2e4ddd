package budget

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"tandem/builtin/models"
	"tandem/human/form"
	"tandem/identity"
	"tandem/llm"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// refusing tells when somebody finds no room.
type refusing struct {
	store.Ledger
	refused chan struct{}
}

func (r refusing) Reserve(ctx context.Context, p identity.Principal, e store.LedgerEntry, limits ...store.Limit) error {
	err := r.Ledger.Reserve(ctx, p, e, limits...)
	if err != nil {
		select {
		case r.refused <- struct{}{}:
		default:
		}
	}
	return err
}

// TestReserve_OtherProcess: who queues for a budget goes on when another process gives something back, of which nobody tells this one.
func TestReserve_OtherProcess(t *testing.T) {
	t.Parallel()
	stores := sqlitetest.Open(t).Stores()
	ledger := stores.Ledger
	refused := make(chan struct{}, 1)
	stores.Ledger = refusing{ledger, refused}
	p := New(Options{Stores: stores, Log: slog.New(slog.DiscardHandler)})
	defer p.Close()
	p.Again = time.Millisecond
	call := models.Spending{Workspace: "ws", Execution: "e1", Workflow: "w", Activation: "a", Node: "n",
		Profile: llm.Profile{ID: "main", Budgets: []llm.Budget{{Per: PerDay, Tokens: 100}}}, Most: llm.Usage{InputTokens: 60}}
	first, err := p.Reserve(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() { // it ends with the room that it gets
		_, err := p.Reserve(t.Context(), call)
		second <- err
	}()
	<-refused
	if err := ledger.Settle(t.Context(), identity.System("ws"), store.Settlement{ID: first, Tokens: 5}); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Errorf("the second call: %v", err)
	}
}

// TestReserve_AsksInEveryLanguage: the question about a budget is in the language of the run, and everybody reads it in their own.
func TestReserve_AsksInEveryLanguage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budget           llm.Budget
		english, chinese string
	}{
		"Tokens": {budget: llm.Budget{Per: PerExecution, Tokens: 100},
			english: `A call of the model "main" needs up to 600 tokens; 0 of 100 are spent.`,
			chinese: `调用模型 "main" 最多需要 600 个 token；预算共 100 个，已用 0 个。`},
		"Cost": {budget: llm.Budget{Per: PerExecution, Cost: 0.5},
			english: `A call of the model "main" may cost up to 1.2; 0 of 0.5 are spent.`,
			chinese: `调用模型 "main" 最多可能花费 1.2；预算共 0.5，已花费 0。`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stores := sqlitetest.Open(t).Stores()
			profile := llm.Profile{ID: "main", Budgets: []llm.Budget{c.budget}, Price: llm.Price{Input: 2000}}
			err := stores.Profiles.Put(t.Context(), identity.System("ws"), store.Profile{Workspace: "ws", ID: "main", Body: json.RawMessage(`{}`)})
			if err != nil {
				t.Fatal(err)
			}
			p := New(Options{Stores: stores, Log: slog.New(slog.DiscardHandler),
				Read: func(store.Profile) (llm.Profile, error) { return profile, nil }})
			defer p.Close()
			_, err = p.Reserve(t.Context(), models.Spending{Workspace: "ws", Execution: "e1", Workflow: "w", Activation: "a", Node: "n",
				Language: "zh", Profile: profile, Most: llm.Usage{InputTokens: 600}})
			over, ok := errors.AsType[*models.Exhausted](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			var asked struct {
				Title       string     `json:"title"`
				Description string     `json:"description"`
				Texts       form.Texts `json:"texts"`
			}
			if err := json.Unmarshal(over.Request, &asked); err != nil {
				t.Fatal(err)
			}
			if asked.Title != "是否增加预算 "+over.Budget+"？" || asked.Description != c.chinese {
				t.Errorf("asked %q, %q; want %q", asked.Title, asked.Description, c.chinese)
			}
			title, about := asked.Texts.In(form.TitleText, "en", ""), asked.Texts.In(form.DescriptionText, "en", "")
			if title != "Raise the budget "+over.Budget+"?" || about != c.english {
				t.Errorf("in English %q, %q; want %q", title, about, c.english)
			}
		})
	}
}
