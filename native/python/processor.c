/* Tells which of the compiled instruction-set levels this processor runs. Plain C for the oldest
   processor, because it is loaded before the choice is made. Being the first module to load, it
   also refuses sub-interpreters, where NumPy's own message would not say what is wrong. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>

/* What the psABI's levels ask for, one bit each, beyond plain x86-64. The compiler's own test knows
   the levels by name only in its newest versions. */
enum { BASIC_ECX, STRUCTURED_EBX, EXTENDED_ECX, XCR0, REGISTERS };
typedef struct {
  int level;
  int source;
  int bit;
} Feature;
static const Feature features[] = {
    {2, BASIC_ECX, 0},       /* SSE3 */
    {2, BASIC_ECX, 9},       /* SSSE3 */
    {2, BASIC_ECX, 13},      /* CMPXCHG16B */
    {2, BASIC_ECX, 19},      /* SSE4.1 */
    {2, BASIC_ECX, 20},      /* SSE4.2 */
    {2, BASIC_ECX, 23},      /* POPCNT */
    {2, EXTENDED_ECX, 0},    /* LAHF, SAHF */
    {3, BASIC_ECX, 12},      /* FMA */
    {3, BASIC_ECX, 22},      /* MOVBE */
    {3, BASIC_ECX, 26},      /* XSAVE */
    {3, BASIC_ECX, 27},      /* OSXSAVE: the system has switched it on, XCR0 may be read */
    {3, BASIC_ECX, 28},      /* AVX */
    {3, BASIC_ECX, 29},      /* F16C */
    {3, STRUCTURED_EBX, 3},  /* BMI1 */
    {3, STRUCTURED_EBX, 5},  /* AVX2 */
    {3, STRUCTURED_EBX, 8},  /* BMI2 */
    {3, EXTENDED_ECX, 5},    /* LZCNT */
    {3, XCR0, 1},            /* the system saves the registers of 128 bits */
    {3, XCR0, 2},            /* and their upper halves */
    {4, STRUCTURED_EBX, 16}, /* AVX512F */
    {4, STRUCTURED_EBX, 17}, /* AVX512DQ */
    {4, STRUCTURED_EBX, 28}, /* AVX512CD */
    {4, STRUCTURED_EBX, 30}, /* AVX512BW */
    {4, STRUCTURED_EBX, 31}, /* AVX512VL */
    {4, XCR0, 5},            /* the system saves the masks */
    {4, XCR0, 6},            /* the upper halves of the first 16 registers of 512 bits */
    {4, XCR0, 7},            /* and all of the other 16 */
};

static PyObject* levels_of(const unsigned* registers) {
  int best = 4;
  for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); ++i)
    if ((registers[features[i].source] >> features[i].bit & 1) == 0 && best >= features[i].level)
      best = features[i].level - 1;
  if (best == 4) return Py_BuildValue("(sss)", "v4", "v3", "v2");
  if (best == 3) return Py_BuildValue("(ss)", "v3", "v2");
  if (best == 2) return Py_BuildValue("(s)", "v2");
  return PyTuple_New(0);
}

static void read_registers(unsigned* registers) {
  unsigned a, b, c, d;
  for (int i = 0; i < REGISTERS; ++i) registers[i] = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) registers[BASIC_ECX] = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) registers[STRUCTURED_EBX] = b;
  if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) registers[EXTENDED_ECX] = c;
  /* xgetbv by its bytes: the oldest processor's compiler options do not have it. */
  if ((registers[BASIC_ECX] >> 27 & 1) != 0)
    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(registers[XCR0]), "=d"(d) : "c"(0));
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
