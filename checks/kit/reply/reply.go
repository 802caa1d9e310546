// Package reply answers requests in JSON, for the hosts that tests play. It
// imports the standard library only.
package reply

import (
	"encoding/json"
	"net/http"
)

// Object is a JSON object on its way out.
type Object = map[string]any

// JSON answers a request.
func JSON(w http.ResponseWriter, status int, body Object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// Always answers every request with the same.
func Always(body Object) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { JSON(w, http.StatusOK, body) }
}
