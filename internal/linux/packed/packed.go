// Package packed writes values down in a form that only this very build
// reads, for caches: JSON takes ten times as long to read back.
package packed

import (
	"encoding/binary"
	"reflect"
)

// Encode writes a value down in the order of its exported fields. Values are
// made of strings, integers, booleans, structs and slices; another kind is a
// bug, and panics.
func Encode(value any) []byte { return encode(nil, reflect.ValueOf(value)) }

func encode(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.String:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		return append(b, v.String()...)
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(b, v.Uint())
	case reflect.Slice:
		if v.IsNil() {
			return append(b, 0)
		}
		b = binary.AppendUvarint(b, uint64(v.Len())+1)
		for i := range v.Len() {
			b = encode(b, v.Index(i))
		}
		return b
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanInterface() {
				b = encode(b, field)
			}
		}
		return b
	}
	panic("bug: a packed value holds a " + v.Kind().String())
}

// Decode reads into what pointer points at, and tells whether src was just
// that. It takes no more memory than src could stand for.
func Decode(src []byte, pointer any) bool {
	r := &unpacker{src: string(src), ok: true}
	r.value(reflect.ValueOf(pointer).Elem())
	return r.ok && r.src == ""
}

type unpacker struct {
	src string // what is left; strings of the result share its memory
	ok  bool
}

func (r *unpacker) value(v reflect.Value) {
	if !r.ok {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(r.take(r.length()))
	case reflect.Bool:
		v.SetBool(r.take(1) == "\x01")
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, used := binary.Varint(r.number())
		r.skip(used)
		v.SetInt(n)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, used := binary.Uvarint(r.number())
		r.skip(used)
		v.SetUint(n)
	case reflect.Slice:
		r.slice(v)
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() {
				r.value(field)
			}
		}
	}
}

// slice reads one whose length is written one more than it is: 0 is nil, which
// JSON tells from an empty one.
func (r *unpacker) slice(v reflect.Value) {
	n := r.length() - 1
	if !r.ok || n < 0 {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		r.value(v.Index(i))
	}
}

// length reads how many bytes or items follow; each takes a byte at least.
func (r *unpacker) length() int {
	n, used := binary.Uvarint(r.number())
	r.skip(used)
	if n > uint64(len(r.src))+1 {
		r.ok = false
		return 0
	}
	return int(n)
}

// number is what the next number can have at most.
func (r *unpacker) number() []byte { return []byte(r.src[:min(len(r.src), binary.MaxVarintLen64)]) }

// skip passes a number; used is what binary.Uvarint says: 0 or less is none.
func (r *unpacker) skip(used int) {
	r.ok = r.ok && used > 0
	r.take(max(used, 0))
}

func (r *unpacker) take(n int) string {
	if n > len(r.src) {
		r.ok = false
		return ""
	}
	taken := r.src[:n]
	r.src = r.src[n:]
	return taken
}
