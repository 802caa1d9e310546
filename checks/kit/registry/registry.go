// Package registry serves packages of npm's on loopback, to npm, npx, pnpm and whatever else asks as they do. It is for
// tests, and imports the standard library only.
package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
)

// Package is one version of a package.
type Package struct {
	Name, Version string
	Bin           map[string]string // programs, and which file each is
	Dependencies  map[string]string // packages, and which versions of each
	Files         map[string]string // by their names in the package; those of Bin may be executed
}

// Server serves packages. Close it.
type Server struct {
	*httptest.Server
	Port string // of 127.0.0.1

	packages map[string]published
	mu       sync.Mutex
	fetched  int
}

// published is a package as the registry has it.
type published struct {
	Package
	packed []byte
}

// Start serves these packages.
func Start(packages ...Package) (*Server, error) {
	s := &Server{packages: map[string]published{}}
	for _, p := range packages {
		packed, err := p.pack()
		if err != nil {
			return nil, err
		}
		s.packages[p.Name] = published{p, packed}
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	at, err := url.Parse(s.URL)
	s.Port = at.Port()
	return s, err
}

// Fetched is how often the content of a package was fetched.
func (s *Server) Fetched() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetched
}

// manifest is what a package and the registry say of it.
func (p Package) manifest() map[string]any {
	return map[string]any{"name": p.Name, "version": p.Version, "bin": p.Bin, "dependencies": p.Dependencies}
}

// pack is the package as npm publishes it.
func (p Package) pack() ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	files := tar.NewWriter(zipped)
	manifest, err := json.Marshal(p.manifest())
	if err != nil {
		return nil, err
	}
	content := maps.Clone(p.Files)
	content["package.json"] = string(manifest)
	programs := slices.Collect(maps.Values(p.Bin))
	for _, name := range slices.Sorted(maps.Keys(content)) {
		header := &tar.Header{Name: "package/" + name, Mode: 0o644, Size: int64(len(content[name]))}
		if slices.Contains(programs, name) {
			header.Mode = 0o755
		}
		err := files.WriteHeader(header)
		if _, wrote := files.Write([]byte(content[name])); err != nil || wrote != nil {
			return nil, errors.Join(err, wrote)
		}
	}
	err = errors.Join(files.Close(), zipped.Close())
	return packed.Bytes(), err
}

// answer gives a package's document at /NAME, and its content at /NAME/-/VERSION.tgz.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	name, file, isFile := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/-/")
	p, is := s.packages[name]
	switch {
	case !is || r.Method != http.MethodGet: // an audit is a POST
		http.NotFound(w, r)
	case isFile && file == p.Version+".tgz":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fetched++
		_, _ = w.Write(p.packed)
	default:
		sum := sha512.Sum512(p.packed)
		version := p.manifest()
		version["dist"] = map[string]string{
			"tarball":   "http://" + path.Join(r.Host, name, "-", p.Version+".tgz"),
			"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"name": name, "dist-tags": map[string]string{"latest": p.Version}, "versions": map[string]any{p.Version: version},
		})
	}
}
