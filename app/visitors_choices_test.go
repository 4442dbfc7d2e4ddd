package app

import (
	"net/http"
	"net/url"
	"testing"
)

func TestVisitors_UnknownChoices(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	v := x.visitor(t)
	x.deploys(t, "pick", visitFlow("pick", "FORM", `{visitor_limit: 100, form_schema: {type: object, properties: {some: {type: array, title: Some colours, items: {enum: [red, blue, green]}}, one: {enum: [a, b], title: One letter}}}}`))
	for _, values := range []url.Values{{"q0": {"red", "purple"}}, {"q0": {"purple"}}} {
		says(t, v.send(t, "/forms/pick", values), http.StatusUnprocessableEntity, "Some colours: ", "purple")
	}
	for _, values := range []url.Values{{"q1": {"c"}}, {"q1": {"a", "b"}}} {
		says(t, v.send(t, "/forms/pick", values), http.StatusUnprocessableEntity, "One letter: ")
	}
	same(t, x.executionsOf(t, "pick"), 0)
	says(t, v.send(t, "/forms/pick", url.Values{"q0": {"red", "green"}, "q1": {"b"}}), http.StatusOK)
	same(t, x.payloads(t, "pick")[0].Get("fields").Raw, `{"one":"b","some":["red","green"]}`)
}
