package n8n_test

import (
	"testing"

	"tandem/importer/importertest"
	"tandem/importer/n8n"
)

func TestSystem(t *testing.T) {
	t.Parallel()
	importertest.Conform(t, n8n.System{}, "testdata/*")
}

func TestSystem_Hostile(t *testing.T) {
	t.Parallel()
	importertest.Hostile(t, n8n.System{}, "testdata/*")
}

func FuzzImport(f *testing.F) { importertest.Fuzz(f, n8n.System{}, "testdata/*") }
