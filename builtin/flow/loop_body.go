package flow

import (
	"encoding/json"
	"slices"
	"time"

	"tandem/builtin/lists"
	"tandem/builtin/values"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

// What the loops have in common: how a body is given its iterations, when it ends early, and what comes of it.

// maxResults is how many bytes of results a loop hands on.
const maxResults = 64 << 20

type loopCommon struct {
	BreakOnError   bool      `json:"break_on_error" doc:"Whether the first failed iteration ends the loop." zh:"首次迭代失败时是否结束循环。"`
	BreakCondition node.Expr `json:"break_condition" doc:"An expression that ends the loop when it holds after an iteration." zh:"迭代后成立即结束循环的表达式。"`
	CollectResults bool      `json:"collect_results" doc:"Whether the results of all iterations are kept." zh:"是否保留每次迭代的结果。"`
}

func loopDefaults() loopCommon { return loopCommon{BreakOnError: true, CollectResults: true} }

// loopState is what a loop keeps from turn to turn.
type loopState struct {
	LimitReached bool `json:"limit_reached,omitempty"`
	Broken       bool `json:"broken,omitempty"`
	// Over is what a loop with a condition carries on: the fields that are not as they were at its beginning. Data is all of it,
	// where what it began with is not an object, and in the journals of older versions.
	Over json.RawMessage `json:"over,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

func readState(raw json.RawMessage) loopState {
	var s loopState
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &s); err != nil {
			panic("the state of a loop cannot be read: " + err.Error())
		}
	}
	return s
}

// keptItems is the list a loop runs over. It is found once and kept for the next iteration, as long as the runtime
// keeps it.
func keptItems(call *node.Call, field, itemsPath string) ([]json.RawMessage, error) {
	k := keptBy(call)
	k.mu.Lock()
	items := k.items
	k.mu.Unlock()
	if items != nil {
		return items, nil
	}
	list, err := lists.Input(call, call.Input, field, itemsPath)
	if err != nil {
		return nil, err
	}
	if list.Items == nil {
		list.Items = []json.RawMessage{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.items = list.Items
	return list.Items, nil
}

// sharedItems names the list a loop goes through, for [node.Scope.Share], and keeps its elements.
func sharedItems(call *node.Call, field, itemsPath string) ([]string, error) {
	if _, err := keptItems(call, field, itemsPath); err != nil {
		return nil, err
	}
	list, at, err := values.ListPlace(call.Input, itemsPath)
	if err != nil || !values.IsList(list.Value) {
		return nil, err
	}
	return at, nil
}

func batches(items []json.RawMessage, size int64) int64 { return (int64(len(items)) + size - 1) / size }

// batch is what an iteration gets: one element, or a list of up to size of them.
func batch(items []json.RawMessage, size, index int64) json.RawMessage {
	if size == 1 {
		return items[index]
	}
	return values.Array(items[index*size : min((index+1)*size, int64(len(items)))])
}

// iteration is what a body sees: the input with the item, the index, and the item once more under the loop's variable.
func iteration(input []values.Member, item json.RawMessage, index int64, variable string) node.Iteration {
	position := values.Encode(index)
	vars := map[string]json.RawMessage{"item": item, "index": position}
	fields := []values.Member{{Key: "item", Value: item}, {Key: "index", Value: position}}
	if variable != "" && variable != "index" && variable != "item" {
		vars[variable] = item
		fields = append(fields, values.Member{Key: variable, Value: item})
	}
	return node.Iteration{Fields: values.Overlay(input, fields...), Vars: vars}
}

// turn asks the break condition after an iteration, with the names of that iteration. When several run at once, it is
// the one that began last.
func (c *loopCommon) turn(call *node.Call, t node.Turn, variable string, item func(index int64) (any, error)) (node.Advance, error) {
	state := readState(t.State)
	if t.Index > 0 && c.BreakCondition != "" {
		names, err := turnNames(t, string(c.BreakCondition))
		if err != nil {
			return node.Advance{}, err
		}
		value, err := item(t.Index - 1)
		if err != nil {
			return node.Advance{}, err
		}
		nameItem(names, value, t.Index-1, variable)
		v, err := call.Eval(string(c.BreakCondition), names)
		if err != nil {
			return node.Advance{}, err
		}
		if expr.Truth(v) {
			state.Broken = true
			return node.Advance{State: values.Encode(state)}, nil
		}
	}
	return node.Advance{Open: true, State: values.Encode(state)}, nil
}

// lastOf is the result of the iteration before.
func lastOf(t node.Turn) json.RawMessage {
	if t.Last == nil {
		return nil
	}
	return t.Last()
}

// turnNames are the results so far, as a condition can read them. All of them are fetched only for a condition that asks.
func turnNames(t node.Turn, source string) (map[string]any, error) {
	names := map[string]any{"last": nil}
	program, err := expr.Compile(source)
	if err != nil {
		return nil, err
	}
	if slices.Contains(program.Roots(), "last") {
		if last := lastOf(t); len(last) > 0 {
			names["last"] = values.Decode(last)
		}
	}
	if !slices.Contains(program.Roots(), "results") {
		return names, nil
	}
	results, err := t.Results()
	if err != nil {
		return nil, err
	}
	list := make([]any, len(results))
	for i, r := range results {
		if len(r) > 0 {
			list[i] = values.Decode(r)
		}
	}
	names["results"] = list
	return names, nil
}

// discards says that nothing asks for the results of the iterations: they are not collected, and no condition reads them.
func (c *loopCommon) discards(conditions ...string) bool {
	if c.CollectResults {
		return false
	}
	for _, source := range append(conditions, string(c.BreakCondition)) {
		if source == "" {
			continue
		}
		if program, err := expr.Compile(source); err != nil || slices.Contains(program.Roots(), "results") {
			return false
		}
	}
	return true
}

func nameItem(names map[string]any, item any, index int64, variable string) {
	names["item"], names["index"] = item, index
	if variable != "" && variable != "index" {
		names[variable] = item
	}
}

// collected is the list of results, checked for its size.
func collected(t node.Closing, collect bool) (json.RawMessage, error) {
	if !collect || t.Results == nil {
		return json.RawMessage("[]"), nil
	}
	results, err := t.Results()
	if err != nil {
		return nil, err
	}
	size := 0
	list := make([]json.RawMessage, len(results))
	for i, r := range results {
		if list[i] = r; len(r) == 0 {
			list[i] = json.RawMessage("null")
		}
		size += len(list[i]) + 1
	}
	if size > maxResults {
		return nil, fault.Newf(fault.TooLarge, "the results of the loop have %d bytes, and %d are allowed; set collect_results to false", size, maxResults)
	}
	return values.Array(list), nil
}

func listOfErrors(t node.Closing) []node.IterationError {
	if t.Errors == nil {
		return []node.IterationError{}
	}
	return t.Errors
}

// completed is what a loop hands on when it has ended.
func completed(t node.Closing, collect bool, final *values.Member) (node.Done, error) {
	results, err := collected(t, collect)
	if err != nil {
		return nil, err
	}
	state := readState(t.State)
	fields := []values.Member{{Key: "results", Value: results}, {Key: "iteration_results", Value: results}}
	if final != nil {
		fields = append(fields, *final)
	}
	fields = append(fields, values.Field("successful_iterations", t.Succeeded), values.Field("failed_iterations", t.Failed),
		values.Field("errors", listOfErrors(t)), values.Field("limit_reached", state.LimitReached), values.Field("broken", state.Broken))
	return node.Done{"completed": values.Object(fields)}, nil
}

// whileLoop repeats a body while a condition holds. An object that the body gives is merged over the data, for the next
// test and for the next iteration.
type whileLoop struct {
	condition string
	variable  string
	limit     int64
	onLimit   string
	after     bool // the first iteration is not tested
	delay     time.Duration
	common    loopCommon
}

func (w whileLoop) open() node.Opening {
	return node.Opening{Count: -1, Concurrency: 1, KeepGoing: !w.common.BreakOnError, Turns: true,
		Discard: w.common.discards(w.condition), State: values.Encode(loopState{})}
}

// data is what the loop carries.
func (w whileLoop) data(call *node.Call, raw json.RawMessage) json.RawMessage {
	state := readState(raw)
	return state.whole(keptBy(call).beginning(call))
}

func (w whileLoop) iteration(call *node.Call, raw json.RawMessage, index int64) (node.Iteration, error) {
	k, state := keptBy(call), readState(raw)
	begins := k.beginning(call)
	fields := state.fields(begins)
	if begins.own {
		fields = values.Overlay(k.membersOf(call.Input), values.Member{Key: "data", Value: state.whole(begins)})
	}
	return iteration(fields, values.Encode(index+1), index, w.variable), nil
}

func (w whileLoop) turn(call *node.Call, t node.Turn) (node.Advance, error) {
	state := readState(t.State)
	state.merge(keptBy(call).beginning(call), lastOf(t))
	if call.Wake != nil { // the pause before an iteration that was tested already
		return node.Advance{Open: true, State: values.Encode(state)}, nil
	}
	if t.Index > 0 && w.common.BreakCondition != "" {
		breaks, err := w.test(call, t, state, string(w.common.BreakCondition), t.Index-1)
		if err != nil {
			return node.Advance{}, err
		}
		if breaks {
			state.Broken = true
			return node.Advance{State: values.Encode(state)}, nil
		}
	}
	if t.Index > 0 || !w.after {
		holds, err := w.test(call, t, state, w.condition, t.Index)
		if err != nil || !holds {
			return node.Advance{State: values.Encode(state)}, err
		}
	}
	if t.Index >= w.limit {
		if w.onLimit == "fail" {
			return node.Advance{}, fault.Newf(fault.LoopLimit, "the condition still holds after %d iterations, and %q is %d; raise it or change the condition", t.Index, "max_iterations", w.limit)
		}
		state.LimitReached = true
		return node.Advance{State: values.Encode(state)}, nil
	}
	if t.Index > 0 && w.delay > 0 {
		return node.Advance{State: values.Encode(state), Wait: &node.Wait{Until: call.Time().Add(w.delay)}}, nil
	}
	return node.Advance{Open: true, State: values.Encode(state)}, nil
}

func (w whileLoop) test(call *node.Call, t node.Turn, state loopState, source string, index int64) (bool, error) {
	names, err := turnNames(t, source)
	if err != nil {
		return false, err
	}
	program, err := expr.Compile(source)
	if err != nil {
		return false, err
	}
	state.names(keptBy(call).beginning(call), program, names)
	nameItem(names, index+1, index, w.variable)
	v, err := call.Eval(source, names)
	return expr.Truth(v), err
}

// loopBody are the keys of every loop: what is connected to the first runs for each iteration.
func loopBody() *workflow.ScopeKeys {
	return &workflow.ScopeKeys{Entry: "iteration", Exits: []string{"completed"}}
}

func loopKeys() []node.Key {
	return []node.Key{
		{Name: "iteration", Meaning: node.Says("What one iteration gets; what is connected here runs for each.", "一次迭代的输入；所连接的节点每次迭代都运行。"), Fields: []node.Value{
			node.Meaning("item", "The element, or the batch, or the number of a range.", "元素、一批元素或范围中的数。"),
			node.Meaning("index", "The number of the iteration, from 0.", "迭代序号，从 0 起。"),
			node.Meaning("*", "The element again by the name that iteration_variable gives it, and with a condition what the iteration before has made.", "以 iteration_variable 命名的元素；条件循环时还有上一次迭代的结果。"),
		}},
		{Name: "completed", Meaning: node.Says("The results of the iterations, and how the loop has ended.", "各次迭代的结果及循环如何结束。"), Fields: []node.Value{
			node.Meaning("results", "The result of each iteration; null of those that failed.", "各次迭代的结果；失败的为 null。"),
			node.Meaning("iteration_results", "The same, by an older name.", "同上（旧名称）。"),
			node.Meaning("final_result", "What the last iteration has left, of loops that have such.", "最后一次迭代留下的结果（若有）。"),
			node.Meaning("successful_iterations", "How many iterations have succeeded.", "成功的迭代数。"),
			node.Meaning("failed_iterations", "How many have failed.", "失败的迭代数。"),
			node.Meaning("errors", "What went wrong in them.", "失败的原因。"),
			node.Meaning("limit_reached", "Whether max_iterations has ended the loop.", "是否因 max_iterations 结束。"),
			node.Meaning("broken", "Whether an error or the break_condition has ended it.", "是否因错误或 break_condition 结束。"),
		}},
	}
}

func loopAliases() map[string]string { return map[string]string{workflow.DefaultKey: "completed"} }
