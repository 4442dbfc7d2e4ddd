package actiontest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"testing"
)

// What fakes of services that speak JSON share.

// Write answers with a value.
func Write(t testing.TB, w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		t.Errorf("the answer cannot be written: %v", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have left
}

// Read reads the object that was sent.
func Read(t testing.TB, r *http.Request) map[string]any {
	var v map[string]any
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, json.Unmarshal(body, &v)); err != nil {
		t.Errorf("what is sent to %s is not an object: %v", r.URL.Path, err)
	}
	return v
}

// Number is a parameter of the query that is a number, or another number when it is not there.
func Number(r *http.Request, name string, other int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil {
		return other
	}
	return n
}

// Part is a page of a list: size entries from a place on, and whether there are more.
func Part[T any](list []T, from, size int) (page []T, more bool) {
	from = min(from, len(list))
	end := min(from+size, len(list))
	return append([]T{}, list[from:end]...), end < len(list)
}
