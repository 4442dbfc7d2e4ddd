package settings

import (
	"net/http"

	"tandem/fault"
)

// clientDocument answers authorization servers who want to know what this program is.
func (s *settings) clientDocument(w http.ResponseWriter, r *http.Request) {
	document, err := s.o.Tools.ClientDocument()
	if err != nil {
		http.Error(w, fault.From(err).Message, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=3600")
	if _, err := w.Write(document); err != nil {
		s.Log.DebugContext(r.Context(), "nobody took the document of this client", "error", err)
	}
}
