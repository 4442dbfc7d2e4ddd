package human

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tandem/api"
	"tandem/host"
	"tandem/payload"
)

// ForkOf tells how an execution came of others, the last fork first; nil when it was not forked.
func ForkOf(forks []host.Fork) *api.Fork {
	var told []api.Fork
	for _, f := range slices.Backward(forks) {
		one := api.Fork{
			ExecutionID: f.Source, ActivationID: string(f.Activation), NodeID: f.Node, By: f.By, Reason: f.Reason, Time: f.Time, Edits: []api.ForkEdit{},
		}
		for _, e := range f.Made() {
			one.Edits = append(one.Edits, api.ForkEdit{Name: e.Name, Original: e.Original, Edited: e.Edited})
		}
		told = append(told, one)
	}
	if len(told) == 0 {
		return nil
	}
	told[0].Earlier = told[1:]
	return &told[0]
}

// showFork lets a question say that it is asked in a fork. Strangers are not shown values that the author did not show them.
func (r *Request) showFork(f *api.Fork) {
	r.Fork = f
	if f == nil || r.Access != "link" && r.Access != "public" {
		return
	}
	hide := func(f api.Fork) api.Fork {
		f.By, f.Reason = "", "" // nor do they learn who works here
		f.Edits = slices.Clone(f.Edits)
		for n := range f.Edits {
			f.Edits[n].Original, f.Edits[n].Edited = nil, nil
		}
		return f
	}
	shown := hide(*f)
	shown.Earlier = slices.Clone(f.Earlier)
	for n := range shown.Earlier {
		shown.Earlier[n] = hide(shown.Earlier[n])
	}
	r.Fork = &shown
}

// How much of an edited value and its name a line shows.
const (
	maxForkValue = 300
	maxForkName  = 80
)

// ForkLines says in words that an execution is a fork, of what, by whom, and each edited value beside the original. There are
// none for what was not forked.
func ForkLines(language string, f *api.Fork) []string {
	if f == nil {
		return nil
	}
	say := func(zh, en string, args ...any) string {
		return fmt.Sprintf(pick(strings.ToLower(language), zh, en), args...)
	}
	var lines []string
	for _, one := range append([]api.Fork{*f}, f.Earlier...) {
		by := one.By
		if by == "" {
			by = say("一名操作员", "an operator")
		}
		if len(lines) == 0 {
			lines = append(lines, say("注意：这是一个分叉，由 %s 从执行 %s 的节点 %s 处建立。", "Note: this is a fork, made by %s of execution %s at node %s.", by, one.ExecutionID, one.NodeID))
		} else {
			lines = append(lines, say("在此之前，%s 从执行 %s 的节点 %s 处建立了分叉。", "Before that, %s made a fork of execution %s at node %s.", by, one.ExecutionID, one.NodeID))
		}
		if n := len(one.Edits); n == 0 {
			lines = append(lines, say("没有修改任何值。", "No value was edited."))
		} else {
			lines = append(lines, say("修改了 %d 个值：", "Values edited: %d", n))
		}
		// What replaces something comes first, so that a message which is cut off says it all the same.
		edits := slices.Clone(one.Edits)
		slices.SortStableFunc(edits, func(a, b api.ForkEdit) int { return cmp.Compare(len(b.Original), 0) - cmp.Compare(len(a.Original), 0) })
		for _, e := range edits {
			name := cut(e.Name, maxForkName)
			switch {
			case e.Edited == nil:
				lines = append(lines, name)
			case e.Original == nil:
				lines = append(lines, say("%s：现在是 %s（原来没有）", "%s: now %s (was not there)", name, valueText(e.Edited)))
			default:
				lines = append(lines, say("%s：现在是 %s（原来是 %s）", "%s: now %s (was %s)", name, valueText(e.Edited), valueText(e.Original)))
			}
		}
		if one.Reason != "" {
			lines = append(lines, say("原因：%s", "Reason: %s", cut(one.Reason, maxForkValue)))
		}
	}
	return lines
}

// valueText is a value in one line: a text as it is, anything else as JSON.
func valueText(raw json.RawMessage) string {
	return cut(strings.Join(strings.Fields(payload.Text(raw)), " "), maxForkValue)
}
