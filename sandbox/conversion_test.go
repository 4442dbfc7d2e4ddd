package sandbox

import (
	"testing"

	"tandem/fault"
)

// Conversion functions in the forms that people and generators write them in: an annotated convert without any import, on one line or on
// many, with defaults for what is missing, and with whatever Python has.
func TestPython_ConversionForms(t *testing.T) {
	t.Parallel()
	p := newPool(t, Options{PerTenant: 1})
	const head = "def convert(input_data: Dict[str, Any]) -> Dict[str, Any]:"
	const mail = `{"message":" Hello Team ","email":" Ann@Example.COM ","urgent":true,"tags":["a","b","c","d","e","f"],"count":4,"raw":"{\"k\": [1, 2]}",
		"user":{"name":"Ann","roles":["editor","viewer"]},"items":[{"id":1,"price":2.5},{"id":2,"price":4}],"timestamp":1700000000,"html":"<p>Hi <b>you</b></p>"}`
	forms := []call{
		{name: "a field and a default", source: head + " return {'text': input_data.get('message', ''), 'channel': '#general'}", value: `{"text":" Hello Team ","channel":"#general"}`},
		{name: "a default that is used", source: head + " return {'text': input_data.get('nothing', 'none given')}", value: `{"text":"none given"}`},
		{name: "a text around a field", source: head + "\n    return {'text': f\"-- {input_data.get('message', '').strip()} --\"}", value: `{"text":"-- Hello Team --"}`},
		{name: "everything as text", source: head + " return {'result': str(input_data.get('count'))}", value: `{"result":"4"}`},
		{name: "if and else in one", source: head + " return {'message': input_data['text'] if 'text' in input_data else 'No message'}", value: `{"message":"No message"}`},
		{name: "cleaning", source: head + "\n    return {\n        'email': input_data.get('email', '').lower().strip(),\n        'priority': 'high' if input_data.get('urgent', False) else 'normal',\n        'tags': input_data.get('tags', [])[:5]  # not more\n    }", value: `{"email":"ann@example.com","priority":"high","tags":["a","b","c","d","e"]}`},
		{name: "a guard", source: head + "\n    if not isinstance(input_data.get('count'), int):\n        return {'error': 'no number'}\n    return {'double': input_data['count'] * 2}", value: `{"double":8}`},
		{name: "deep with defaults", source: head + " return {'role': input_data.get('user', {}).get('roles', ['none'])[0]}", value: `{"role":"editor"}`},
		{name: "a loop", source: head + "\n    rows = []\n    for i, item in enumerate(input_data['items']):\n        rows.append({'n': i + 1, 'id': item['id']})\n    return {'rows': rows}", value: `{"rows":[{"n":1,"id":1},{"n":2,"id":2}]}`},
		{name: "comprehensions", source: head + " return {'total': sum(i['price'] for i in input_data['items']), 'ids': [i['id'] for i in input_data['items'] if i['price'] > 3], 'by': {i['id']: i['price'] for i in input_data['items']}}", value: `{"total":6.5,"ids":[2],"by":{"1":2.5,"2":4}}`},
		{name: "a helper inside", source: head + "\n    def shout(text: str) -> str:\n        return text.upper()\n    return {'text': shout(input_data['user']['name'])}", value: `{"text":"ANN"}`},
		{name: "a helper before", source: "def helper(v: Optional[str]) -> str:\n    return (v or '').strip()\n\n" + head + "\n    return {'text': helper(input_data.get('message'))}", value: `{"text":"Hello Team"}`},
		{name: "JSON in a text", source: head + "\n    try:\n        parsed = json.loads(input_data.get('raw', '{}'))\n    except (TypeError, ValueError):\n        parsed = {}\n    return {'first': parsed.get('k', [None])[0]}", value: `{"first":1}`},
		{name: "JSON as a text", source: head + " return {'text': json.dumps(input_data['user'], ensure_ascii=False, sort_keys=True)}", value: `{"text":"{\"name\": \"Ann\", \"roles\": [\"editor\", \"viewer\"]}"}`},
		{name: "a pattern", source: head + "\n    return {'plain': re.sub(r'<[^>]+>', '', input_data['html'])}", value: `{"plain":"Hi you"}`},
		{name: "a time", source: head + "\n    at = datetime.datetime.fromtimestamp(input_data['timestamp'], datetime.timezone.utc)\n    return {'day': at.strftime('%Y-%m-%d')}", value: `{"day":"2023-11-14"}`},
		{name: "numbers", source: head + " return {'pages': math.ceil(input_data['count'] / 3), 'share': round(input_data['count'] / 3, 2)}", value: `{"pages":2,"share":1.33}`},
		{name: "a text of parts", source: head + "\n    lines = ['*' + str(i['id']) + '*: ' + format(i['price'], '.2f') for i in input_data['items']]\n    return {'blocks': [{'type': 'section', 'text': '\\n'.join(lines)}]}", value: `{"blocks":[{"type":"section","text":"*1*: 2.50\n*2*: 4.00"}]}`},
		{name: "a description first", source: head + "\n    \"\"\"Takes what is needed.\n\n    And nothing else.\n    \"\"\"\n    user: Dict[str, Any] = input_data.get('user') or {}\n    return {'user_name': user.get('name', 'unknown')}", value: `{"user_name":"Ann"}`},
		{name: "sorted, any and all", source: head + " return {'best': sorted(input_data['items'], key=lambda i: -i['price'])[0]['id'], 'any': any(i['price'] > 3 for i in input_data['items']), 'all': all(i['price'] > 3 for i in input_data['items'])}", value: `{"best":2,"any":true,"all":false}`},
		{name: "several ways to find it", source: head + "\n    for key in ('body', 'text', 'message'):\n        value = input_data.get(key)\n        if value:\n            return {'found': key}\n    return {'found': None}", value: `{"found":"message"}`},
		{name: "another name", source: "def to_slack(data: Dict[str, Any]) -> Dict[str, str]:\n    return {'text': data['user']['name']}", value: `{"text":"Ann"}`},
		{name: "a lambda", source: "lambda input_data: {'n': len(input_data.get('tags', []))}", value: `{"n":6}`},
		{name: "types of typing", source: "def convert(input_data: Mapping[str, Union[str, int, List[Any], None]]) -> Optional[Dict[str, Any]]:\n    pairs: List[Tuple[str, int]] = [(t, i) for i, t in enumerate(input_data['tags'][:2])]\n    return dict(pairs)", value: `{"a":0,"b":1}`},
		{name: "nothing to do", source: head + "\n    return {'skip_execution': True} if input_data.get('count', 0) < 10 else input_data", value: `{"skip_execution":true}`},
	}
	for i := range forms {
		forms[i].entry, forms[i].input = "convert", mail
	}
	run(t, p, Python, forms)
}

// The other names of the input are there for the function, and never in what it returns, however the input is wrapped in it.
func TestAliases(t *testing.T) {
	t.Parallel()
	const object, list, own = `{"n":1,"o":{"k":[1]}}`, `[1,2]`, `{"data":7,"n":1}`
	names := []string{"value", "data", "output"}
	for language, forms := range map[Language][]call{
		Python: {
			{name: "unchanged", source: "lambda x: x", input: object, value: object},
			{name: "wrapped", source: "lambda x: {'order': x}", input: object, value: `{"order":` + object + `}`},
			{name: "wrapped deep", source: "def convert(x): return [{'a': [x, (x,)]}]", input: object, value: `[{"a":[` + object + `,[` + object + `]]}]`},
			{name: "spread", source: "lambda x: {**x, 'm': 2}", input: object, value: `{"n":1,"o":{"k":[1]},"m":2}`},
			{name: "copied", source: "import copy\ndef convert(x): return [dict(x), x.copy(), copy.deepcopy(x), x | {'m': 2}]", input: `{"n":1}`, value: `[{"n":1},{"n":1},{"n":1},{"n":1,"m":2}]`},
			{name: "as JSON", source: "lambda x: json.dumps(x)", input: `{"n":1}`, value: `"{\"n\": 1}"`},
			{name: "listed", source: "lambda x: [list(x), len(x), list(x.items())]", input: `{"n":1}`, value: `[["n"],1,[["n",1]]]`},
			{name: "by name", source: "lambda x: [x['value']['n'], x.get('data')['n'], 'output' in x, 'other' in x, x.get('other', 5)]", input: object, value: `[1,1,true,false,5]`},
			{name: "wrapped by name", source: "lambda x: {'a': x['value'], 'b': x['data']}", input: `{"n":1}`, value: `{"a":{"n":1},"b":{"n":1}}`},
			{name: "as parameters", source: "def convert(n, value, output=None): return [n, value, output]", input: `{"n":1}`, value: `[1,{"n":1},{"n":1}]`},
			{name: "its own field", source: "lambda x: [x['data'], x['value'], x]", input: own, value: `[7,` + own + `,` + own + `]`},
			{name: "a field is set", source: "def convert(x):\n    x['value'] = 3\n    x.pop('output')\n    return x", input: `{"n":1}`, value: `{"n":1,"value":3}`},
			{name: "is a dict", source: "lambda x: [isinstance(x, dict), x == {'n': 1}, type(x).__name__]", input: `{"n":1}`, value: `[true,true,"dict"]`},
			{name: "what is missing", source: "lambda x: x['other']", input: object, fails: fault.CodeError, says: "KeyError: 'other'"},
			{name: "a list", source: "lambda x: x['data'][1]", input: list, value: `2`},
			{name: "a list unchanged", source: "lambda x: x", input: list, value: list},
			{name: "a list wrapped", source: "lambda x: {'l': [x]}", input: list, value: `{"l":[[1,2]]}`},
			{name: "a list wrapped by name", source: "lambda x: {'l': x['value']}", input: list, value: `{"l":[1,2]}`},
			{name: "a text wrapped", source: "lambda x: {'t': x, 'n': (1, x)}", input: `"a"`, value: `{"t":"a","n":[1,"a"]}`},
			{name: "null", source: "lambda x: x", input: `null`, value: `null`},
		},
		JavaScript: {
			{name: "unchanged", source: "x => x", input: object, value: object},
			{name: "wrapped", source: "x => ({order: x})", input: object, value: `{"order":` + object + `}`},
			{name: "wrapped deep", source: "x => [{a: [x, [x]]}]", input: object, value: `[{"a":[` + object + `,[` + object + `]]}]`},
			{name: "spread", source: "x => ({...x, m: 2})", input: object, value: `{"n":1,"o":{"k":[1]},"m":2}`},
			{name: "assigned", source: "x => Object.assign({}, x)", input: object, value: object},
			{name: "as JSON", source: "x => JSON.stringify({x})", input: `{"n":1}`, value: `"{\"x\":{\"n\":1}}"`},
			{name: "listed", source: "x => { const seen = []; for (const k in x) seen.push(k); return [Object.keys(x), Object.entries(x), seen] }", input: `{"n":1}`, value: `[["n"],[["n",1]],["n"]]`},
			{name: "by name", source: "x => [x.value.n, x['data'].n, 'output' in x, 'other' in x, x.other ?? 5]", input: object, value: `[1,1,true,false,5]`},
			{name: "taken apart", source: "({n, value, ...rest}) => [n, value, rest]", input: `{"n":1,"m":2}`, value: `[1,{"n":1,"m":2},{"m":2}]`},
			{name: "wrapped by name", source: "x => ({a: x.value, b: x.data})", input: `{"n":1}`, value: `{"a":{"n":1},"b":{"n":1}}`},
			{name: "its own field", source: "x => [x.data, x.value, x]", input: own, value: `[7,` + own + `,` + own + `]`},
			{name: "a field is set", source: "x => { x.value = 3; return x }", input: `{"n":1}`, value: `{"n":1,"value":3}`},
			{name: "a name of the language", source: "x => ({w: x, v: x.value})", input: `{"__proto__":{"a":1},"n":1}`, value: `{"w":{"__proto__":{"a":1},"n":1},"v":{"__proto__":{"a":1},"n":1}}`},
			{name: "a list", source: "x => x.data[1]", input: list, value: `2`},
			{name: "a list unchanged", source: "x => x", input: list, value: list},
			{name: "a list wrapped", source: "x => ({l: [x]})", input: list, value: `{"l":[[1,2]]}`},
			{name: "a list wrapped by name", source: "x => ({l: x.value})", input: list, value: `{"l":[1,2]}`},
			{name: "a text wrapped", source: "x => ({t: x})", input: `"a"`, value: `{"t":"a"}`},
			{name: "null", source: "x => x", input: `null`, value: `null`},
		},
	} {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			for i := range forms {
				forms[i].entry, forms[i].aliases = "convert", names
			}
			run(t, newPool(t, Options{PerTenant: 1}), language, forms)
		})
	}
}
