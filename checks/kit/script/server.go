package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"claudebox/checks/kit/reply"
)

// Server answers an agent with its turns, in order. It is an http.Handler;
// give it to httptest.NewServer, which listens on loopback.
type Server struct {
	mux *http.ServeMux
	by  func(Request) (Turn, error) // nil: it has a script

	mu       sync.Mutex
	turns    []Turn // those still to come
	requests []Request
	asked    int // requests that were answered by a function
	strays   []string
	faults   []error
}

// New makes a server that plays the turns.
func New(turns ...Turn) *Server {
	s := &Server{mux: http.NewServeMux(), turns: slices.Clone(turns)}
	s.mux.HandleFunc("POST /v1/messages", s.messages)
	s.mux.HandleFunc("POST /v1/messages/count_tokens", countTokens)
	s.mux.HandleFunc("/", s.stray)
	return s
}

// By makes a server that answers each request by a function, and keeps none of
// them: for conversations that go on beside each other, for long.
func By(answer func(Request) (Turn, error)) *Server {
	s := New()
	s.by = answer
	return s
}

// Add puts more turns at the end of the script.
func (s *Server) Add(turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns = append(s.turns, turns...)
}

// ServeHTTP makes the server an http.Handler. As the proxy of an agent it lets
// nothing through, and notes where the agent wanted to go.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect || r.URL.IsAbs() {
		s.stray(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// Requests are those that took a turn, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Strays are requests for anything but the Messages API, as "METHOD target".
func (s *Server) Strays() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.strays)
}

// Err tells what did not go by the script: a request that no turn was left
// for or that lacked what its turn wants, and turns that were never asked for.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := slices.Clone(s.faults)
	if len(s.turns) > 0 {
		faults = append(faults, fmt.Errorf("%d turns were not asked for", len(s.turns)))
	}
	return errors.Join(faults...)
}

func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	request := Request{Header: r.Header}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		refuse(w, fmt.Errorf("decode request: %w", err))
		return
	}
	if len(request.Tools) == 0 {
		answer(w, r, request, Say("ok"), 0)
		return
	}
	turn, number, err := s.next(request)
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, r, request, turn, number)
}

// next records the request and takes the turn that answers it. A turn whose
// demand is not met is spent all the same, so that one fault stays one fault.
func (s *Server) next(request Request) (turn Turn, number int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by != nil {
		s.asked++
		if turn, err = s.by(request); err != nil {
			s.faults = append(s.faults, err)
		}
		return turn, s.asked, err
	}
	s.requests = append(s.requests, request)
	number = len(s.requests)
	if len(s.turns) == 0 {
		err = fmt.Errorf("request %d: no turn is left for %q", number, ending(request.Prompt()))
		s.faults = append(s.faults, err)
		return Turn{}, number, err
	}
	turn, s.turns = s.turns[0], s.turns[1:]
	if turn.Want == nil {
		return turn, number, nil
	}
	if err = turn.Want(request); err != nil {
		err = fmt.Errorf("request %d: %w", number, err)
		s.faults = append(s.faults, err)
	}
	return turn, number, err
}

// answer sends the turn in the form that was asked for. A failed write means
// that the agent has left, which is its right.
func answer(w http.ResponseWriter, r *http.Request, request Request, turn Turn, number int) {
	if turn.Fail != "" {
		refuse(w, errors.New(turn.Fail))
		return
	}
	if !request.Stream {
		reply.JSON(w, http.StatusOK, turn.message(number, request.Model))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if turn.start(w, number, request.Model) != nil {
		return
	}
	if turn.Pause != nil {
		_ = http.NewResponseController(w).Flush()
		turn.Pause()
		if turn.resume(w) != nil {
			return
		}
	}
	if turn.Hold {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	_ = turn.finish(w)
}

// refuse answers as the API does when it forbids a request: the one refusal
// after which Claude Code does not try again (measured with 2.1.329).
func refuse(w http.ResponseWriter, err error) {
	reply.JSON(w, http.StatusForbidden, object{
		"type":  "error",
		"error": object{"type": "permission_error", "message": "script: " + err.Error()},
	})
}

func countTokens(w http.ResponseWriter, _ *http.Request) {
	reply.JSON(w, http.StatusOK, object{"input_tokens": 1})
}

func (s *Server) stray(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.strays = append(s.strays, r.Method+" "+r.RequestURI)
	s.mu.Unlock()
	reply.JSON(w, http.StatusNotFound, object{
		"type":  "error",
		"error": object{"type": "not_found_error", "message": r.URL.Path},
	})
}
