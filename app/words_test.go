package app

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"tandem/api"
)

// manyWrong is a workflow with what authors get wrong every day.
const manyWrong = `
metadata: {id: wrong, name: wrong}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: http, description: d, type: ACTION, subtype: HTTP_REQUESTT}
  - {id: wait, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal}}
  - {id: lone, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: soon, colour: red}}
  - {id: say, description: d, type: FLOW, subtype: DELAY, input_params: {text: "{{nowhere.outputs.x}}"}}
connections:
  - {from_node: start, to_node: wait}
  - {from_node: start, to_node: sey}
  - {from_node: wait, to_node: say, output_key: maybe}
`

// What programs say about a definition, and why something cannot be done, is said in the language of the reader; the codes stay.
func TestWords_InTheLanguageOfTheReader(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	english := want[api.Validation](t, x.call(t, "editor", "POST", "/workflows/validate", manyWrong, "Content-Type", "application/yaml"), http.StatusOK)
	for name, told := range map[string]api.Validation{
		"header":    want[api.Validation](t, x.call(t, "editor", "POST", "/workflows/validate", manyWrong, "Content-Type", "application/yaml", "Accept-Language", "fr, zh-CN;q=0.9, en;q=0.8"), http.StatusOK),
		"parameter": want[api.Validation](t, x.call(t, "editor", "POST", "/workflows/validate?language=zh", manyWrong, "Content-Type", "application/yaml"), http.StatusOK),
	} {
		if len(told.Problems) != len(english.Problems) || len(told.Problems) < 7 {
			t.Fatalf("%s: %d problems and %d in English: %+v", name, len(told.Problems), len(english.Problems), english.Problems)
		}
		for i, p := range told.Problems {
			if e := english.Problems[i]; p.Code != e.Code || p.Path != e.Path || p.Severity != e.Severity || !isChinese(p.Message) || isChinese(e.Message) {
				t.Errorf("%s: %+v, in English %+v", name, p, e)
			}
		}
	}

	saved := want[api.Saved](t, x.call(t, "editor", "POST", "/workflows", asksPeople, "Content-Type", "application/yaml", "Accept-Language", "zh"), http.StatusCreated)
	if len(saved.Problems) != 3 || slices.ContainsFunc(saved.Problems, func(p api.Problem) bool { return !isChinese(p.Message) }) {
		t.Errorf("saved: %+v", saved.Problems)
	}
	wrong := refused(t, x.call(t, "editor", "POST", "/workflows", manyWrong, "Content-Type", "application/yaml", "Accept-Language", "zh"), http.StatusUnprocessableEntity, "invalid")
	if !isChinese(wrong.Detail) || len(wrong.Errors) == 0 || !isChinese(wrong.Errors[0].Message) {
		t.Errorf("refused: %+v", wrong)
	}
	lacks := refused(t, x.call(t, "editor", "POST", "/workflows/asks/deploy", nil, "Accept-Language", "zh"), http.StatusUnprocessableEntity, "invalid")
	if !isChinese(lacks.Detail) || len(lacks.Errors) == 0 || !isChinese(lacks.Errors[0].Message) {
		t.Errorf("deployed: %+v", lacks)
	}

	done := want[api.ExecuteResponse](t, x.call(t, "operator", "POST", "/workflows/asks/execute", `{"inputs": {"who": "operator"}}`), http.StatusAccepted)
	at := "/executions/" + done.ExecutionID
	for _, body := range []string{`{"action":"resume"}`} {
		no := refused(t, x.call(t, "operator", "POST", at+"/actions", body, "Accept-Language", "zh-CN,zh;q=0.9"), http.StatusConflict, "conflict")
		if !isChinese(no.Detail) {
			t.Errorf("%s: %+v", body, no)
		}
		if en := refused(t, x.call(t, "operator", "POST", at+"/actions", body), http.StatusConflict, "conflict"); isChinese(en.Detail) {
			t.Errorf("%s: %+v", body, en)
		}
	}
	frozen := refused(t, x.call(t, "editor", "POST", at+"/freeze", nil, "Accept-Language", "zh"), http.StatusUnprocessableEntity, "invalid")
	if !isChinese(frozen.Detail) {
		t.Errorf("freeze: %+v", frozen)
	}
	for _, i := range x.opens(t, done.ExecutionID, 1) {
		told := want[api.InteractionDetail](t, x.call(t, "viewer", "GET", "/interactions/"+i.ID, nil, "Accept-Language", "zh"), http.StatusOK)
		if told.MayRespond || !isChinese(told.WhyNot) {
			t.Errorf("why not: %v %q", told.MayRespond, told.WhyNot)
		}
	}
}

// isChinese says that a text has words in Chinese.
func isChinese(words string) bool {
	return strings.ContainsFunc(words, func(r rune) bool { return r >= 0x4e00 && r <= 0x9fff })
}
