package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/identity"
	"tandem/server"
)

// What a deleted workspace has left outside of the database goes with the next pass of tidying, and what another one has stays.
func TestWorkspaces_DeletedLeaveNothing(t *testing.T) {
	t.Parallel()
	x := openSite(t, func(o *server.Options) { o.Workspace = "default" })
	want[api.NewWorkspace](t, x.call(t, "admin", "POST", "/workspaces", map[string]any{"id": "sales"}), http.StatusCreated)
	place := func(workspace string) string { return filepath.Join(x.dir, "files", workspace, "in", "a.txt") }
	blobs := map[string]string{}
	for _, workspace := range []string{"default", "sales"} {
		works(t, os.MkdirAll(filepath.Dir(place(workspace)), 0o700))
		works(t, os.WriteFile(place(workspace), []byte("x"), 0o600))
		blob, err := x.stores.Blobs.Put(t.Context(), identity.System(workspace), strings.NewReader("kept by "+workspace))
		works(t, err)
		blobs[workspace] = blob.Hash
	}
	if a := x.call(t, "admin", "DELETE", "/workspaces/sales", nil); a.status != http.StatusNoContent {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if _, err := x.limits.Tidy(t.Context(), time.Now().Add(time.Hour), time.Hour, 1); err != nil {
		t.Fatal(err)
	}
	for workspace, there := range map[string]bool{"default": true, "sales": false} { // order does not matter: each is looked at by itself
		if _, err := os.Stat(place(workspace)); (err == nil) != there {
			t.Errorf("the files of %s: %v", workspace, err)
		}
		if _, err := x.stores.Blobs.Stat(t.Context(), identity.System(workspace), blobs[workspace]); (err == nil) != there {
			t.Errorf("the large values of %s: %v", workspace, err)
		}
	}
}
