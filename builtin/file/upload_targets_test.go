package file

import (
	"testing"

	"github.com/tidwall/gjson"

	"tandem/objectstore"
)

// The targets of an upload are an address and the object stores that are registered, whatever these are.
func TestUpload_TargetsAreTheRegisteredStores(t *testing.T) {
	t.Parallel()
	k := fileUpload(nil, nil, map[string]objectstore.Store{"cellar": nil, "attic": nil})
	schema := k.ConfigSchema.JSON()
	for path, want := range map[string]string{
		"target.enum": `["http","attic","cellar"]`, "bucket.x-with.target": `["attic","cellar"]`, "key.x-with.target": `["attic","cellar"]`, "url.x-with.target": `["http"]`,
	} {
		if got := gjson.GetBytes(schema, "properties."+path).Raw; got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if fields := gjson.GetBytes(fileUpload(nil, nil, nil).ConfigSchema.JSON(), "properties.target.enum").Raw; fields != `["http"]` {
		t.Errorf("without stores: %s", fields)
	}
}
