"""FILL_VALUE_CONSTANT: the example of its page."""

from _printed import compare

import anydml as dml

desc = dml.FillValueConstant(
    output_tensor=dml.TensorDesc("FLOAT32", (1, 1, 2, 4)), value_data_type="FLOAT32", value=13
)
filled = dml.Device("cpu", feature_level="2_1").create_operator(desc).compile()()
compare("example", filled, [[[[13, 13, 13, 13], [13, 13, 13, 13]]]])
