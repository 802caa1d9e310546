package plancache

import (
	"encoding/binary"
	"reflect"
)

// pack writes a value down in the order of its fields, in a form that only
// this very build reads: JSON takes ten times as long to read back. Values are
// made of strings, integers, booleans, structs and slices.
func pack(value any) []byte { return packValue(nil, reflect.ValueOf(value)) }

func packValue(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.String:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		return append(b, v.String()...)
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Int, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.Slice:
		if v.IsNil() {
			return append(b, 0)
		}
		b = binary.AppendUvarint(b, uint64(v.Len())+1)
		for i := range v.Len() {
			b = packValue(b, v.Index(i))
		}
		return b
	case reflect.Struct:
		for i := range v.NumField() {
			b = packValue(b, v.Field(i))
		}
		return b
	}
	panic("bug: a plan holds a " + v.Kind().String())
}

// unpack reads into what pointer points at, and tells whether src was just
// that. It takes no more memory than src could stand for.
func unpack(src []byte, pointer any) bool {
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
	case reflect.Int, reflect.Int64:
		n, used := binary.Varint([]byte(r.src[:min(len(r.src), binary.MaxVarintLen64)]))
		r.take(max(used, 1))
		v.SetInt(n)
	case reflect.Slice:
		r.slice(v)
	case reflect.Struct:
		for i := range v.NumField() {
			r.value(v.Field(i))
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
	n, used := binary.Uvarint([]byte(r.src[:min(len(r.src), binary.MaxVarintLen64)]))
	r.take(max(used, 1))
	if n > uint64(len(r.src))+1 {
		r.ok = false
		return 0
	}
	return int(n)
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
