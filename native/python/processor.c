/* Tells which of the compiled instruction-set levels this processor runs. Plain C for the oldest
   processor, because it is loaded before the choice is made. Being the first module to load, it
   also refuses sub-interpreters, where NumPy's own message would not say what is wrong. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include "levels.h"

static PyObject* levels_of(const unsigned* registers) {
  const int best = best_level(registers);
  if (best == 4) return Py_BuildValue("(sss)", "v4", "v3", "v2");
  if (best == 3) return Py_BuildValue("(ss)", "v3", "v2");
  if (best == 2) return Py_BuildValue("(s)", "v2");
  return PyTuple_New(0);
}

static PyObject* levels(PyObject* self, PyObject* unused) {
  unsigned registers[REGISTERS];
  (void)self;
  (void)unused;
  read_registers(registers);
  return levels_of(registers);
}

/* The same for a processor and a system that are described: what a test asks. */
static PyObject* levels_with(PyObject* self, PyObject* arguments) {
  unsigned registers[REGISTERS];
  (void)self;
  if (!PyArg_ParseTuple(arguments, "IIII", &registers[BASIC_ECX], &registers[STRUCTURED_EBX],
                        &registers[EXTENDED_ECX], &registers[XCR0]))
    return NULL;
  return levels_of(registers);
}

static PyObject* registers(PyObject* self, PyObject* unused) {
  unsigned found[REGISTERS];
  (void)self;
  (void)unused;
  read_registers(found);
  return Py_BuildValue("(IIII)", found[BASIC_ECX], found[STRUCTURED_EBX], found[EXTENDED_ECX],
                       found[XCR0]);
}
#else
static PyObject* levels(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  return Py_BuildValue("(s)", "baseline");
}
#endif

static PyMethodDef methods[] = {
    {"levels", levels, METH_NOARGS, "The levels that this processor runs, best first."},
#if defined(__x86_64__) && defined(__GNUC__)
    {"levels_with", levels_with, METH_VARARGS,
     "The levels of a processor with these registers: ecx of leaf 1, ebx of leaf 7, ecx of leaf "
     "0x80000001, the lower half of XCR0."},
    {"registers", registers, METH_NOARGS, "Those registers of this processor."},
#endif
    {NULL, NULL, 0, NULL}};

static int refuse_sub_interpreters(PyObject* module) {
  (void)module;
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return 0;
  PyErr_SetString(PyExc_ImportError,
                  "anydml runs in the main interpreter only: NumPy and the kernels' modules cannot "
                  "be loaded into a sub-interpreter");
  return -1;
}

/* Any interpreter may load it, so that the refusal is ours. It holds no state. */
static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void*)refuse_sub_interpreters},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "_processor",
                                        "Which instruction-set levels this processor runs.",
                                        0,
                                        methods,
                                        slots,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit__processor(void) { return PyModuleDef_Init(&definition); }
