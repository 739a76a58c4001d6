/* Tells which of the compiled instruction-set levels this processor runs. Plain C for the oldest
   processor, because it is loaded before the choice is made. Being the first module to load, it
   also refuses sub-interpreters, where NumPy's own message would not say what is wrong. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject* levels(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  const int v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("ssse3") &&
                 __builtin_cpu_supports("popcnt");
  const int v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                 __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
  const int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512vl");
  if (v4) return Py_BuildValue("(sss)", "v4", "v3", "v2");
  if (v3) return Py_BuildValue("(ss)", "v3", "v2");
  if (v2) return Py_BuildValue("(s)", "v2");
  return PyTuple_New(0);
#else
  return Py_BuildValue("(s)", "baseline");
#endif
}

static PyMethodDef methods[] = {
    {"levels", levels, METH_NOARGS, "The levels that this processor runs, best first."},
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
