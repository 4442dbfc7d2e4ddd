package n8n

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tandem/importer"
	"tandem/payload"
	"tandem/text"
)

// prelude are the names that code of n8n knows, made of the input: json and index of the item, items, nodes by name, env.
const prelude = `  const listOf = v => Array.isArray(v) ? v : v === null || v === undefined ? [] : [v];
  const wrap = v => ({json: v ?? {}, binary: {}, pairedItem: {item: 0}});
  const index = Number(input.index ?? 0);
  const view = list => ({
    item: wrap(list.length > 1 ? list[index] : list[0]), json: (list.length > 1 ? list[index] : list[0]) ?? {}, isExecuted: list.length > 0,
    first: () => wrap(list[0]), last: () => wrap(list[list.length - 1]), all: () => list.map(wrap), itemMatching: i => wrap(list[i]), params: {}, context: {},
  });
  const known = name => {
    if (!(name in (input.nodes ?? {}))) throw new Error("nothing is known of the node " + name);
    return listOf(input.nodes[name]);
  };
  const $ = name => view(known(name)), $items = name => known(name).map(wrap);
  const $node = new Proxy({}, {get: (_, name) => view(known(name))});
  const $all = listOf(input.items ?? input.json), $json = input.json ?? $all[0] ?? {};
  const $input = {...view($all), item: wrap($json), json: $json};
  const items = $all.map(wrap), item = wrap($json), $env = input.env ?? {}, $vars = $env, $itemIndex = index, $runIndex = 0, $position = index;
  const $execution = {id: input.execution_id ?? "", mode: "production"}, $workflow = {id: input.workflow_id ?? "", name: input.workflow_name ?? "", active: true};
  const $prevNode = {name: "", outputIndex: 0, runIndex: 0}, $binary = {}, $parameter = {};
`

// dates are the names of dates and times that code of n8n knows, as far as they are needed often.
const dates = `  const pad = (n, width) => String(n).padStart(width, "0");
  const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
  const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
  const SPANS = {millisecond: 1, second: 1e3, minute: 6e4, hour: 36e5, day: 864e5, week: 6048e5};
  const spanOf = unit => SPANS[String(unit).replace(/s$/, "")];
  class DateTime {
    constructor(ms) { this.ms = ms; this.date = new Date(ms); this.isValid = !Number.isNaN(ms); }
    static now() { return new DateTime(Date.now()); }
    static utc() { return DateTime.now(); }
    static local() { return DateTime.now(); }
    static fromISO(s) { return new DateTime(Date.parse(s)); }
    static fromMillis(n) { return new DateTime(Number(n)); }
    static fromSeconds(n) { return new DateTime(Number(n) * 1000); }
    static fromJSDate(d) { return new DateTime(d.getTime()); }
    get year() { return this.date.getUTCFullYear(); } get month() { return this.date.getUTCMonth() + 1; } get day() { return this.date.getUTCDate(); }
    get hour() { return this.date.getUTCHours(); } get minute() { return this.date.getUTCMinutes(); } get second() { return this.date.getUTCSeconds(); }
    get millisecond() { return this.date.getUTCMilliseconds(); } get weekday() { return this.date.getUTCDay() || 7; } get ts() { return this.ms; }
    get monthLong() { return MONTHS[this.month - 1]; } get weekdayLong() { return DAYS[this.date.getUTCDay()]; }
    setZone() { return this; } setLocale() { return this; } toUTC() { return this; } toLocal() { return this; } toJSDate() { return this.date; }
    valueOf() { return this.ms; } toMillis() { return this.ms; } toSeconds() { return Math.floor(this.ms / 1000); } toUnixInteger() { return this.toSeconds(); }
    toISO() { return this.date.toISOString(); } toISODate() { return this.toISO().slice(0, 10); } toISOTime() { return this.toISO().slice(11); }
    toString() { return this.toISO(); } toJSON() { return this.toISO(); } toLocaleString() { return this.toISODate(); }
    move(span, sign) {
      const d = new Date(this.ms);
      let ms = 0;
      for (const [unit, n] of Object.entries(span)) {
        if (/^years?$/.test(unit)) d.setUTCFullYear(d.getUTCFullYear() + sign * n);
        else if (/^quarters?$/.test(unit)) d.setUTCMonth(d.getUTCMonth() + sign * 3 * n);
        else if (/^months?$/.test(unit)) d.setUTCMonth(d.getUTCMonth() + sign * n);
        else if (spanOf(unit)) ms += sign * n * spanOf(unit);
        else throw new Error("dates know no unit " + unit);
      }
      return new DateTime(d.getTime() + ms);
    }
    plus(a, unit) { return this.move(typeof a === "object" ? a : {[unit ?? "milliseconds"]: a}, 1); }
    minus(a, unit) { return this.move(typeof a === "object" ? a : {[unit ?? "milliseconds"]: a}, -1); }
    startOf(unit) {
      const d = new Date(this.ms);
      if (unit === "week") d.setUTCDate(d.getUTCDate() - (this.weekday - 1));
      const at = ["year", "month", "day", "hour", "minute", "second"].indexOf(unit === "week" ? "day" : unit);
      if (at < 0) throw new Error("dates know no unit " + unit);
      const p = [d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate(), d.getUTCHours(), d.getUTCMinutes(), d.getUTCSeconds()].map((v, i) => i <= at ? v : i === 2 ? 1 : 0);
      return new DateTime(Date.UTC(...p));
    }
    endOf(unit) { return new DateTime(this.startOf(unit).plus({[unit]: 1}).ms - 1); }
    set(v) {
      return new DateTime(Date.UTC(v.year ?? this.year, (v.month ?? this.month) - 1, v.day ?? this.day, v.hour ?? this.hour, v.minute ?? this.minute, v.second ?? this.second, v.millisecond ?? this.millisecond));
    }
    diff(other, unit) { const ms = this.ms - other.ms, n = ms / (spanOf(unit ?? "milliseconds") ?? 1); return {[unit ?? "milliseconds"]: n, as: u => ms / spanOf(u), toMillis: () => ms}; }
    diffNow(unit) { return this.diff(DateTime.now(), unit); }
    toFormat(layout) {
      const names = {yyyy: () => this.year, yy: () => pad(this.year % 100, 2), LLLL: () => this.monthLong, MMMM: () => this.monthLong, LLL: () => this.monthLong.slice(0, 3), MMM: () => this.monthLong.slice(0, 3),
        MM: () => pad(this.month, 2), LL: () => pad(this.month, 2), M: () => this.month, L: () => this.month, dd: () => pad(this.day, 2), d: () => this.day, HH: () => pad(this.hour, 2), H: () => this.hour,
        hh: () => pad(this.hour % 12 || 12, 2), h: () => this.hour % 12 || 12, mm: () => pad(this.minute, 2), m: () => this.minute, ss: () => pad(this.second, 2), s: () => this.second, SSS: () => pad(this.millisecond, 3),
        EEEE: () => this.weekdayLong, cccc: () => this.weekdayLong, EEE: () => this.weekdayLong.slice(0, 3), ccc: () => this.weekdayLong.slice(0, 3), a: () => this.hour < 12 ? "AM" : "PM", ZZ: () => "+00:00", Z: () => "+0"};
      return layout.replace(/'([^']*)'|yyyy|yy|[LM]{1,4}|dd?|HH?|hh?|mm?|ss?|SSS|EEEE|EEE|cccc|ccc|a|ZZ|Z/g, (m, quoted) => quoted ?? (names[m] ? names[m]() : m));
    }
    format(layout) { return this.toFormat(layout); }
  }
  const $now = DateTime.now(), $today = DateTime.now().startOf("day");
`

// comparing are the comparisons of conditions that only code can make.
const comparing = `  const blank = v => v === undefined || v === null || v === "" || (Array.isArray(v) && !v.length) || (typeof v === "object" && !Object.keys(v).length);
  const test = (op, a, b) => {
    switch (op) {
      case "equals": return a === b || (a != null && b != null && typeof a !== "object" && String(a) === String(b));
      case "contains": return Array.isArray(a) ? a.includes(b) : String(a ?? "").includes(String(b ?? ""));
      case "startsWith": return String(a ?? "").startsWith(b);
      case "endsWith": return String(a ?? "").endsWith(b);
      case "regex": return new RegExp(b).test(String(a ?? ""));
      case "exists": return a !== undefined && a !== null;
      case "empty": return blank(a);
      case "gt": return Number(a) > Number(b);
      case "gte": return Number(a) >= Number(b);
      case "lt": return Number(a) < Number(b);
      case "lte": return Number(a) <= Number(b);
      case "after": return Date.parse(a) > Date.parse(b);
      case "before": return Date.parse(a) < Date.parse(b);
    }
    throw new Error("no such comparison: " + op);
  };
`

// dated says that code needs dates. read-only
var dated = regexp.MustCompile(`\$now|\$today|DateTime`)

// opening is the beginning of a program.
func opening(code string) string {
	if dated.MatchString(code) {
		return prelude + dates
	}
	return prelude
}

// program is the code that computes the values of a node.
func (r *reading) program() string {
	var b strings.Builder
	b.WriteString("function main(input) {\n" + opening(strings.Join(r.calc, "\n")) + "  return {\n")
	for i, code := range r.calc {
		fmt.Fprintf(&b, "    v%d: (() => (\n%s\n))() ?? null,\n", i+1, code)
	}
	b.WriteString("  };\n}\n")
	return b.String()
}

// programInput is what that code is given.
func (r *reading) programInput() map[string]any { return r.codeInput(strings.Join(r.calc, "\n")) }

// What code names. read-only
var (
	namedNode = regexp.MustCompile(`(?:\$|\$items|_)\(\s*["'\x60]([^"'\x60]+)["'\x60]|(?:\$node|_node)\s*(?:\[\s*["'\x60]([^"'\x60]+)["'\x60]\s*\]|\.\s*([A-Za-z_]\w*))`)
	namedEnv  = regexp.MustCompile(`[$_]env\s*(?:\.\s*([A-Za-z_]\w*)|\[\s*["']([A-Za-z_]\w*)["']\s*\])`)
)

// codeInput is what code is given: the item, the nodes and the variables that it names.
func (r *reading) codeInput(code string) map[string]any {
	in := map[string]any{}
	switch {
	case r.json.unknown:
	case r.json.many:
		in["items"] = r.json.whole()
	default:
		in["json"] = r.json.whole()
	}
	if r.inLoop {
		in["index"] = "{{index}}"
	}
	nodes := map[string]any{}
	for _, m := range namedNode.FindAllStringSubmatch(code, -1) {
		name := m[1] + m[2] + m[3]
		if other := r.f.byName[name]; other != nil {
			nodes[name] = r.f.shapeOf(other, 0).whole()
		}
	}
	if len(nodes) > 0 {
		in["nodes"] = nodes
	}
	env := map[string]any{}
	for _, m := range namedEnv.FindAllStringSubmatch(code, -1) {
		env[m[1]+m[2]] = "{{env." + m[1] + m[2] + "}}"
	}
	if len(env) > 0 {
		in["env"] = env
	}
	if strings.Contains(code, "$execution") {
		in["execution_id"] = "{{execution.id}}"
	}
	if strings.Contains(code, "$workflow") {
		in["workflow_id"], in["workflow_name"] = "{{workflow.id}}", r.f.Definition().Metadata.Name
	}
	return in
}

// script lets the node run a program over the list that arrives; what it returns is the list that comes out.
func (m *making) script(body string) {
	m.kind = "ACTION.RUN_CODE"
	m.cfg["language"], m.cfg["code"] = "javascript", "function main(input) {\n"+body+"\n}\n"
	m.in["items"] = m.listIn()
	m.empty = true
}

// listIn is what arrives as a list.
func (m *making) listIn() any {
	switch {
	case m.json.unknown:
		return []any{}
	case m.json.many:
		return m.json.whole()
	}
	return []any{m.json.whole()}
}

// finishing makes a list of items of what code of n8n has returned.
const finishing = `  const out = await run.call({helpers: {}, getNodeParameter: () => undefined, getWorkflowStaticData: () => ({})});
  return listOf(out).map(one => one && typeof one === "object" && "json" in one ? one.json : one);`

// code imports a node with code.
func code(m *making) {
	source, language := m.n.params.First("jsCode", "functionCode", "code").Text(), "javascript"
	if m.n.text("language") == "python" || m.n.text("language") == "pythonNative" || m.n.params.At("pythonCode").Exists() &&
		!m.n.params.At("jsCode").Exists() {
		source, language = m.n.text("pythonCode"), "python"
	}
	each := m.n.text("mode") == "runOnceForEachItem" || short(m.n.typ) == "functionItem"
	m.kind, m.empty = "ACTION.RUN_CODE", true
	m.cfg["language"] = language
	m.in = m.codeInput(source)
	if each && !m.json.unknown && !m.json.many {
		m.in["items"] = []any{m.json.whole()}
	}
	if language == "python" {
		m.cfg["code"] = pythonOpening + indented(source) + pythonFinishing
		if each {
			m.cfg["code"] = pythonOpening + indented(source) + pythonFinishing + "[0]"
		}
		m.line.Approximate(text.Of("code in Python finds the items as _input, _items and _json; other names of n8n are not there"))
		return
	}
	program := "async function main(input) {\n" + opening(source)
	if each {
		program += "  const run = async function () {\n" + source + "\n  };\n" + strings.Replace(finishing, ");\n  return ",
			");\n  const made = ", 1) + "\n  return made[0] ?? {};\n}\n"
	} else {
		program += "  const run = async function () {\n" + source + "\n  };\n" + finishing + "\n}\n"
	}
	if short(m.n.typ) == "functionItem" {
		program = strings.Replace(program, "const run = async function () {\n", "const run = async function () {\n  const item = $json;\n", 1)
	}
	m.cfg["code"] = program
	if hostCode.MatchString(source) {
		m.line.Approximate(text.Of("its code uses modules or helpers of n8n, which code in the sandbox does not have; such a line fails"))
	}
}

// hostCode is code that needs what the sandbox does not have. read-only
var hostCode = regexp.MustCompile(`\brequire\s*\(|\bimport\s+[\w{*]|\bhelpers\.|\$helpers|getWorkflowStaticData|\$getWorkflowStaticData|\bfetch\s*\(|\bBuffer\b|\bprocess\.|\$jmespath|\$evaluateExpression|\bsetTimeout\b`)

// What code in Python finds around it.
const (
	pythonOpening = `class _Item(dict):
    def __getattr__(self, name):
        value = self.get(name)
        return _Item(value) if isinstance(value, dict) else value
    def __setattr__(self, name, value):
        self[name] = value
    def to_py(self):
        return self

def main(input):
    given = input.get("items", input.get("json"))
    given = given if isinstance(given, list) else [] if given is None else [given]
    wrapped = [_Item(json=_Item(one) if isinstance(one, dict) else one) for one in given]
    class _view:
        item = wrapped[0] if wrapped else _Item(json=_Item())
        json = item["json"]
        @staticmethod
        def all():
            return wrapped
        @staticmethod
        def first():
            return wrapped[0]
        @staticmethod
        def last():
            return wrapped[-1]
    _input, _items, items, _json, _item = _view, wrapped, wrapped, _view.json, _view.item
    def run():
        pass
`
	pythonFinishing = `
    out = run()
    out = out if isinstance(out, list) else [] if out is None else [out]
    return [one["json"] if isinstance(one, dict) and "json" in one else one for one in out]`
)

// indented moves the lines of code to where the body of a function is.
func indented(source string) string {
	lines := strings.Split(strings.ReplaceAll(source, "\r\n", "\n"), "\n")
	for i := range lines {
		if strings.TrimSpace(lines[i]) != "" {
			lines[i] = "        " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// listed writes a list of texts as JavaScript.
func listed(names []string) string {
	raw, err := payload.Encode(slices.Clone(names))
	if err != nil || len(names) == 0 {
		return "[]"
	}
	return string(raw)
}

// fieldsOf are the names in a parameter that is a list of them, or one text with commas.
func fieldsOf(v importer.Value) []string {
	var out []string
	for _, s := range v.Texts() {
		for _, name := range strings.Split(s, ",") {
			if name = strings.TrimSpace(strings.TrimPrefix(name, "=")); name != "" {
				out = append(out, name)
			}
		}
	}
	return out
}
