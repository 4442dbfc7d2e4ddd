package hosttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tandem/engine"
	"tandem/host"
)

// childrenShare runs a loop whose body starts children, and these another one each, with large fields that are as they were. Once they are
// shared and once copied. What comes of it is the same, and what is shared is kept once for all of them.
func (b *bench) childrenShare() {
	shared, sharedNames := b.startsChildren("true")
	copied, copiedNames := b.startsChildren("false")
	if !maps.Equal(shared, copied) {
		b.t.Errorf("what is shared comes to %v, what is not to %v", shared, copied)
	}
	// the two fields, what the first execution begins with, what it hands on, and its end; else each child would have its own
	if sharedNames > 5 || copiedNames < 12 {
		b.t.Errorf("%d values are kept for what is shared, %d for what is not", sharedNames, copiedNames)
	}
}

// startsChildren runs the loop of childrenShare. It returns what each execution has begun with and put out, by its activation in its
// parent, and how many large values their journals name.
func (b *bench) startsChildren(share string) (made map[string]string, names int) {
	id := "x" + share
	b.save(
		flow("f"+share, []string{"t MANUAL", "l EACH {count: 3, whole: true}", "k CHILD {workflow: kid" + share + ", children: 1, share: " + share + "}", "d WORK"},
			[]string{"t -> l", "l.iteration -> k", "k -> l", "l.completed -> d"}),
		flow("kid"+share, []string{"t MANUAL {share: " + share + "}", "h HAND {share: " + share + "}", "w WORK", "k CHILD {workflow: last" + share + ", children: 1, share: " + share + "}"},
			[]string{"t -> h", "h -> k", "h -> w"}),
		flow("last"+share, []string{"t MANUAL {share: " + share + "}", "w WORK {effect: idempotent}"}, []string{"t -> w"}))
	b.start(id, "f"+share, func(r *host.StartRequest) {
		r.Initial = json.RawMessage(`{"first":1,"big":"` + strings.Repeat("x", 50_000) + `","n":{"list":["` + strings.Repeat("y", 40_000) + `"]}}`)
		r.TriggerData = r.Initial
	})
	b.ends(id, engine.StatusSuccess)
	all := map[string]string{"x": id}
	for i := range 3 {
		name := fmt.Sprintf("l[%d]/k", i)
		all[name] = engine.NthChildID(id, engine.ActivationID(name), 0, 0)
		all[name+"/k"] = engine.NthChildID(all[name], "k", 0, 0)
	}
	made, hashes := map[string]string{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		execution := all[name]
		fold, err := b.journal(execution).Fold(b.ctx)
		if err != nil {
			b.t.Fatal(err)
		}
		outputs, err := fold.Outputs()
		if err != nil {
			b.t.Fatal(err)
		}
		_, folded := fold.Execution()
		_, start := b.view(execution)
		if string(start.Initial) != string(folded.Initial) || string(start.Trigger) != string(folded.Trigger) ||
			len(start.Initial) < 90_000 {
			b.t.Errorf("%s begins with %d and %d bytes for those who look, and with %d and %d for those who run it", name, len(start.Initial), len(start.Trigger), len(folded.Initial), len(folded.Trigger))
		}
		// what reads the input is in w; what starts a child is not given what it hands on
		made[name] = fmt.Sprintf("%s %s %s", start.Initial, start.Trigger, outputs["w"])
		b.namedBy(execution, hashes)
	}
	return made, len(hashes)
}

// namedBy adds the large values that a journal names.
func (b *bench) namedBy(execution string, hashes map[string]bool) {
	for row, err := range b.rig.Source(b.rig.Stores()).Rows(b.ctx, b.who, execution, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		for _, blob := range row.Large {
			hashes[blob.Hash] = true
		}
		for _, list := range row.Beside {
			for _, field := range list {
				hashes[field.Hash] = true
			}
		}
	}
}
