#include "cases/cases.h"
#include "cases/composed/draws.h"

namespace levin::test {

namespace {

OpCase vector_products() {
  return with_errors(
      of_products(composition(
          "vector_products",
          {call("torch.dot(x0, x1)", {input({5}), input({5})}, LEVIN_CALL(dot(x0, x1)), 5),
           call("torch.vdot(x0, x1)", {input({5}), input({5})}, LEVIN_CALL(vdot(x0, x1)), 5),
           call("torch.inner(x0, x1)", {input({2, 3}), input({4, 3})}, LEVIN_CALL(inner(x0, x1)), 3),
           call("torch.mv(x0, x1)", {input({3, 4}), input({4})}, LEVIN_CALL(mv(x0, x1)), 4),
           call("torch.outer(x0, x1)", {input({3}), input({4})}, LEVIN_CALL(outer(x0, x1))),
           call("torch.addmv(x0, x1, x2, beta=0.5, alpha=2)", {input({3}), input({3, 4}), input({4})},
                LEVIN_CALL(addmv(x0, x1, x2, 0.5, 2)), 5),
           call("torch.addr(x0, x1, x2, alpha=-1)", {input({3, 4}), input({3}), input({4})},
                LEVIN_CALL(addr(x0, x1, x2, 1, -1)), 2),
           call("torch.kron(x0, x1)", {input({2, 3}), input({3, 2})}, LEVIN_CALL(kron(x0, x1))),
           call("torch.kron(x0, x1)", {input({3}), input({2, 2})}, LEVIN_CALL(kron(x0, x1))),
           fixed(call("torch.linalg.cross(x0, x1)", {input({2, 3}), input({2, 3})}, LEVIN_CALL(cross(x0, x1)), 2)),
           fixed(call("torch.linalg.cross(x0, x1, dim=0)", {input({3, 1}), input({3, 4})}, LEVIN_CALL(cross(x0, x1, 0)),
                      2))})),
      {{"[dot] the vectors have 2 and 3 elements", [] { dot(ones({2}), ones({3})); }},
       {"[mv] b is (2, 2), expected is (K,)", [] { mv(ones({2, 2}), ones({2, 2})); }},
       {"[outer] a is (2, 2), expected is (M,)", [] { outer(ones({2, 2}), ones({2})); }},
       {"[cross] axis -1 of (2,) must have size 3", [] { cross(ones({2}), ones({2})); }}});
}

OpCase matrix_products() {
  return with_errors(
      of_products(composition(
          "matrix_products",
          {call("torch.baddbmm(x0, x1, x2, beta=0.5, alpha=2)", {input({2, 1, 3}), input({2, 2, 4}), input({2, 4, 3})},
                LEVIN_CALL(baddbmm(x0, x1, x2, 0.5, 2)), 5),
           call("torch.addbmm(x0, x1, x2)", {input({2, 3}), input({2, 2, 4}), input({2, 4, 3})},
                LEVIN_CALL(addbmm(x0, x1, x2)), 9),
           call("torch.tensordot(x0, x1, 1)", {input({2, 3}), input({3, 2, 2})}, LEVIN_CALL(tensordot(x0, x1, 1)), 3),
           call("torch.tensordot(x0, x1, ([0, 2], [1, 0]))", {input({2, 3, 4}), input({4, 2, 3})},
                LEVIN_CALL(tensordot(x0, x1, {0, 2}, {1, 0})), 8),
           call("torch.linalg.multi_dot([x0, x1, x2])", {input({2, 5}), input({5, 3}), input({3, 4})},
                LEVIN_CALL(multi_dot({x0, x1, x2})), 15),
           call("torch.linalg.multi_dot([x0, x1, x2])", {input({5}), input({5, 3}), input({3})},
                LEVIN_CALL(multi_dot({x0, x1, x2})), 15),
           call("torch.matrix_power(x0, 5)", {input({2, 3, 3}, uniform(-1, 1))}, LEVIN_CALL(matrix_power(x0, 5)), 81),
           call("F.bilinear(x0, x1, x2, x3)", {input({2, 3}), input({2, 2}), input({4, 3, 2}), input({4})},
                LEVIN_CALL(bilinear(x0, x1, x2, x3)), 7),
           call("torch.cdist(x0, x1)", {input({3, 2}, uniform(0, 1)), input({4, 2}, uniform(2, 3))},
                LEVIN_CALL(cdist(x0, x1)), 2),
           call("torch.cdist(x0, x1, 1.0)", {input({2, 3, 2}, uniform(0, 1)), input({2, 4, 2}, uniform(2, 3))},
                LEVIN_CALL(cdist(x0, x1, 1.0)), 2)})),
      {{"[tensordot] axis 0 of (2, 3) and axis 0 of (3, 2) have different sizes",
        [] { tensordot(ones({2, 3}), ones({3, 2}), {0}, {0}); }},
       {"[multi_dot] 1 matrices", [] { multi_dot({ones({2, 2})}); }},
       {"[matrix_power] needs square matrices, x is (2, 3)", [] { matrix_power(ones({2, 3}), 2); }},
       {"[matrix_power] the power -1 is negative", [] { matrix_power(ones({2, 2}), -1); }},
       {"[cdist] needs (..., P, M) and (..., R, M)", [] { cdist(ones({2, 2}), ones({2, 3})); }},
       {"[bilinear] inputs (2, 3) and (2, 3) do not fit the weight (4, 3, 2)", [] {
          bilinear(ones({2, 3}), ones({2, 3}), ones({4, 3, 2}));
        }}});
}

OpCase einsum_case() {
  const auto row = [](std::string equation, std::vector<InputSpec> inputs, int64_t terms) {
    const std::size_t n = inputs.size();
    const std::string names = n == 1 ? "x0" : n == 2 ? "x0, x1" : "x0, x1, x2";
    Call c;
    c.op = [equation](const Tensors& x) -> Tensors { return {einsum(equation, x)}; };
    c.code = "einsum(\"" + equation + "\", {" + names + "})";
    return call("torch.einsum('" + equation + "', " + names + ")", std::move(inputs), c, terms);
  };
  return with_errors(
      of_products(composition(
          "einsum", {row("ij,jk->ik", {input({2, 3}), input({3, 4})}, 3),
                     row("bij,bjk->bki", {input({2, 2, 3}), input({2, 3, 2})}, 3), row("ij->ji", {input({2, 3})}, 1),
                     row("ii->i", {input({3, 3})}, 1), row("ii", {input({3, 3})}, 3), row("ij->", {input({2, 3})}, 6),
                     row("i,j->ij", {input({3}), input({4})}, 1), row("i,i->i", {input({3}), input({3})}, 1),
                     row("ij,ij", {input({2, 3}), input({2, 3})}, 6), row("ba,ca", {input({2, 3}), input({4, 3})}, 3),
                     row("...ij,...jk->...ik", {input({2, 1, 2, 3}), input({4, 3, 2})}, 3),
                     row("b...,bc->c...", {input({2, 3, 2}), input({2, 4})}, 2),
                     row("bhqd, bhkd -> bhqk", {input({1, 2, 3, 4}), input({1, 2, 2, 4})}, 4),
                     row("ij,jk,kl->il", {input({2, 3}), input({3, 4}), input({4, 2})}, 12),
                     row("bn,anm,bm->ba", {input({2, 3}), input({4, 3, 2}), input({2, 2})}, 6),
                     row("ij,kl->i", {input({2, 3}), input({2, 2})}, 12)})),
      {{"[einsum] \"ij,jk->ik\": it names 2 operands, and 1 are given", [] { einsum("ij,jk->ik", {ones({2, 2})}); }},
       {"[einsum] \"ij->k\": the result has 'k', which no operand has", [] { einsum("ij->k", {ones({2, 2})}); }},
       {"[einsum] \"ij->ii\": the result has 'i' twice", [] { einsum("ij->ii", {ones({2, 2})}); }},
       {"[einsum] \"i1->i\": '1' is not a letter", [] { einsum("i1->i", {ones({2, 2})}); }},
       {"[einsum] \"ij\": operand 0 is (2,), which has not the axes \"ij\"", [] { einsum("ij", {ones({2})}); }},
       {"[einsum] \"ij,jk->ik\": axis 'j' has the sizes 3 and 2",
        [] { einsum("ij,jk->ik", {ones({2, 3}), ones({2, 3})}); }},
       {"'i' has the sizes 2 and 3 in one operand", [] {
          einsum("ii->i", {ones({2, 3})});
        }}});
}

OpCase rotary_case() {
  // torch has no such function; the reference is the formula written out.
  const std::string angles =
      "(lambda x, o, b: (torch.arange(x.shape[-2]) + o).double()[:, None] * "
      "b ** (-torch.arange(x.shape[-1] // 2).double() / (x.shape[-1] // 2)))";
  const std::string halves =
      "(lambda x, t: torch.cat([x.chunk(2, -1)[0] * t.cos() - x.chunk(2, -1)[1] * t.sin(), "
      "x.chunk(2, -1)[0] * t.sin() + x.chunk(2, -1)[1] * t.cos()], -1))";
  const std::string neighbours =
      "(lambda x, t: torch.stack([x[..., ::2] * t.cos() - x[..., 1::2] * t.sin(), "
      "x[..., ::2] * t.sin() + x[..., 1::2] * t.cos()], -1).flatten(-2))";
  return with_errors(
      of_products(composition(
          "rotary_embedding",
          {fixed(call(halves + "(x0, " + angles + "(x0, 0, 10000.0).to(x0.dtype))", {input({2, 3, 4})},
                      LEVIN_CALL(rotary_embedding(x0)), 2)),
           fixed(call(neighbours + "(x0, " + angles + "(x0, 5, 100.0).to(x0.dtype))", {input({3, 6})},
                      LEVIN_CALL(rotary_embedding(x0, {.base = 100, .offset = 5, .interleaved = true})), 2))})),
      {{"[rotary_embedding] needs (..., T, E) with an even E, x is (2, 3)", [] {
          rotary_embedding(ones({2, 3}));
        }}});
}

}  // namespace

std::vector<OpCase> product_cases() {
  return {vector_products(), with_draws(matrix_products(), product_draws()), with_draws(einsum_case(), einsum_draws()),
          rotary_case()};
}

}  // namespace levin::test
