/* An array's memory through CPython's buffer interface, checked: what a typed memoryview does
 * that kernels need, in a few lines instead of the hundreds of kilobytes of Cython's.
 *
 * onemodel_array_of releases the buffer at once: whoever looks at the memory keeps the array itself,
 * and an array that somebody keeps does not move. A memoryview may be released by another thread,
 * and its owner resized; where any object may come in, onemodel_hold_array keeps the buffer. */

#ifndef ONEMODEL_ARRAYS_H
#define ONEMODEL_ARRAYS_H

#include <Python.h>
#include <string.h>

enum { ONEMODEL_RANK = 4 };

typedef struct {
    void *data;
    Py_ssize_t size; /* of elements */
    Py_ssize_t shape[ONEMODEL_RANK];
    Py_ssize_t strides[ONEMODEL_RANK]; /* in bytes */
} onemodel_array;

/* C's name of a format's element type, as errors show it. */
static inline const char *onemodel_type_name(char code)
{
    static const char codes[] = "?bBhHiIlLqQfd";
    static const char *const names[] = {
        "bool", "signed char", "unsigned char", "short", "unsigned short", "int",
        "unsigned int", "long", "unsigned long", "long long", "unsigned long long", "float",
        "double",
    };
    const char *found = code ? strchr(codes, code) : NULL;
    return found ? names[found - codes] : "another type";
}

/* Note where the elements of `object` lie. `kind` is one of f, d (floats), i (int32), q (int64),
 * Q (uint64), B (uint8); `rank` is -1 for any, and then only data and size are filled in;
 * `flags` ask for an order and for writing. The buffer is held in `view` until
 * PyBuffer_Release. Returns -1 with an exception set, and then holds nothing. */
static inline int onemodel_hold_array(
    PyObject *object, char kind, int rank, int flags, onemodel_array *array, Py_buffer *view)
{
    const char *format;
    int fits;
    if (PyObject_GetBuffer(object, view, flags | PyBUF_FORMAT) < 0)
        return -1;
    format = view->format ? view->format : "B";
    if (*format == '@' || *format == '=' || *format == '^')
        format++;
    switch (kind) {
    case 'i':
        fits = strchr("il", *format) && view->itemsize == 4;
        break;
    case 'q':
        fits = strchr("lq", *format) && view->itemsize == 8;
        break;
    case 'Q':
        fits = strchr("LQ", *format) && view->itemsize == 8;
        break;
    default:
        fits = *format == kind;
    }
    if (!*format || format[1] || !fits) {
        PyErr_Format(
            PyExc_ValueError, "Buffer dtype mismatch, expected '%s' but got '%s'",
            kind == 'q' ? "int64_t" : kind == 'Q' ? "uint64_t" : onemodel_type_name(kind),
            format[0] && format[1] ? "another type" : onemodel_type_name(*format));
        PyBuffer_Release(view);
        return -1;
    }
    if (rank >= 0 && view->ndim != rank) {
        PyErr_Format(
            PyExc_ValueError, "Buffer has wrong number of dimensions (expected %d, got %d)",
            rank, view->ndim);
        PyBuffer_Release(view);
        return -1;
    }
    array->data = view->buf;
    array->size = view->len / view->itemsize;
    for (int axis = 0; axis < rank; axis++) {
        array->shape[axis] = view->shape[axis];
        array->strides[axis] = view->strides[axis];
    }
    return 0;
}

/* The same, without holding the buffer. */
static inline int onemodel_array_of(
    PyObject *object, char kind, int rank, int flags, onemodel_array *array)
{
    Py_buffer view;
    if (onemodel_hold_array(object, kind, rank, flags, array, &view) < 0)
        return -1;
    PyBuffer_Release(&view);
    return 0;
}

#endif
