package app

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// ownHeaders are the headers of a call that an author decides about: who calls, and those that begin with X-Own, whose values differ from
// run to run.
func ownHeaders(h http.Header) string {
	who := h.Get("Authorization")
	if strings.HasPrefix(who, "AWS4-") {
		who = "signed" // with the time in it
	}
	var names []string
	for name := range h { // order does not matter: sorted below
		if strings.HasPrefix(name, "X-Own") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.TrimSpace(who + " " + strings.Join(names, " "))
}

// servePage is what a workbench has under addresses that are not those of models. Address is where the pages of the run are.
func servePage(rw http.ResponseWriter, r *http.Request, rest, address string, first bool) {
	which, after, _ := strings.Cut(rest, "/")
	number, _ := strconv.Atoi(after) // of those that have one
	rw.Header().Set("Content-Type", "application/json")
	switch which {
	case "hop":
		if number > 0 {
			rw.Header().Set("Location", fmt.Sprintf("%s/hop/%d", address, number-1))
			rw.WriteHeader(http.StatusFound)
			return
		}
	case "status":
		rw.WriteHeader(number)
	case "flaky":
		if first {
			rw.WriteHeader(http.StatusInternalServerError)
		}
	case "slow":
		<-r.Context().Done()
	case "list":
		serveList(rw, r, address)
		return
	case "text":
		rw.Header().Set("Content-Type", "text/plain")
	case "find":
		fmt.Fprintf(rw, `{"results":[{"title":"A","url":"http://a.example/x","content":"one","score":1,"name":"AA"},{"title":"B","url":%q,"content":"two","name":"BB"}],"hits":[{"title":"C","url":"http://c.example/y"}],"number_of_results":9,"count":5}`, address+"/text")
		return
	}
	fmt.Fprintf(rw, `{"page":%q,"method":%q,"padding":%q}`, rest, r.Method, strings.Repeat("x", 200))
}

// serveList is a list of three pages with one item each, which can be asked for by number, by offset, by a cursor and by links.
func serveList(rw http.ResponseWriter, r *http.Request, address string) {
	at := 0
	for _, name := range []string{"page", "p", "offset", "o", "cursor", "c"} {
		if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
			at = n
		}
	}
	items, next, cursor := fmt.Sprintf(`[%d]`, at), fmt.Sprintf("%s/list?p=%d", address, at+1), strconv.Itoa(at+1)
	switch {
	case at == 2:
		next, cursor = "", ""
	case at > 2:
		items, next, cursor = `[]`, "", ""
	}
	fmt.Fprintf(rw, `{"items":%s,"rows":[1%02d],"next":%q,"later":"","after":%q,"since":""}`, items, at, next, cursor)
}
