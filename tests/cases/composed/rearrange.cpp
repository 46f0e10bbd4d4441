#include "cases/cases.h"
#include "cases/composed/draws.h"

namespace levin::test {

namespace {

OpCase joining() {
  return composition(
      "joining",
      {call("torch.hstack([x0, x1])", {input({2, 3}), input({2, 4})}, LEVIN_CALL(hstack({x0, x1}))),
       call("torch.hstack([x0, x1])", {input({3}), input({2})}, LEVIN_CALL(hstack({x0, x1}))),
       call("torch.vstack([x0, x1])", {input({3}), input({2, 3})}, LEVIN_CALL(vstack({x0, x1}))),
       call("torch.dstack([x0, x1])", {input({2, 3}), input({2, 3})}, LEVIN_CALL(dstack({x0, x1}))),
       call("torch.column_stack([x0, x1])", {input({3}), input({3, 2})}, LEVIN_CALL(column_stack({x0, x1}))),
       call("torch.block_diag(x0, x1, x2)", {input({2, 3}), input({4}), input({3, 1})},
            LEVIN_CALL(block_diag({x0, x1, x2}))),
       call("torch.cartesian_prod(x0, x1)", {input({3}), input({2})}, LEVIN_CALL(cartesian_prod({x0, x1}))),
       call("torch.combinations(x0)", {input({4})}, LEVIN_CALL(combinations(x0))),
       call("torch.combinations(x0, 0)", {input({3})}, LEVIN_CALL(combinations(x0, 0))),
       call("torch.combinations(x0, 3, True)", {input({3})}, LEVIN_CALL(combinations(x0, 3, true))),
       call("torch.meshgrid(x0, x1, indexing='ij')", {input({3}), input({2})}, LEVIN_CALL(meshgrid({x0, x1}))),
       call("torch.meshgrid(x0, x1, x2, indexing='xy')", {input({3}), input({2}), input({4})},
            LEVIN_CALL(meshgrid({x0, x1, x2}, Indexing::xy)))});
}

OpCase repeating() {
  return composition(
      "repeating",
      {call("x0.repeat(2, 3)", {input({2, 3})}, LEVIN_CALL(repeat(x0, {2, 3}))),
       call("x0.repeat(2, 1, 3)", {input({2, 3})}, LEVIN_CALL(repeat(x0, {2, 1, 3}))),
       call("x0.repeat(0, 2)", {input({3})}, LEVIN_CALL(repeat(x0, {0, 2}))),
       call("x0.tile(3)", {input({2, 3})}, LEVIN_CALL(tile(x0, {3}))),
       call("x0.repeat_interleave(2)", {input({2, 3})}, LEVIN_CALL(repeat_interleave(x0, 2))),
       call("x0.repeat_interleave(3, 0)", {input({2, 3})}, LEVIN_CALL(repeat_interleave(x0, 3, 0))),
       fixed(call("x0.repeat_interleave(torch.tensor([2, 0, 1]), 1)", {input({2, 3})},
                  LEVIN_CALL(repeat_interleave(x0, tensor<int64_t>({2, 0, 1}), 1)))),
       fixed(call("torch.broadcast_to(x0, (2, 4, 3))", {input({4, 1})}, LEVIN_CALL(broadcast_to(x0, {2, 4, 3})))),
       call("torch.broadcast_tensors(x0, x1)", {input({4, 1}), input({3})}, LEVIN_CALL(broadcast_tensors({x0, x1}))),
       call("x0.expand_as(x1)", {input({1, 3}), constant({2, 3})}, LEVIN_CALL(expand_as(x0, x1))),
       fixed(call("x0.reshape_as(x1)", {input({4, 3}), constant({2, 6})}, LEVIN_CALL(reshape_as(x0, x1))))});
}

OpCase moving() {
  OpCase c = composition(
      "moving",
      {call("x0.movedim(0, -1)", {input({2, 3, 4})}, LEVIN_CALL(movedim(x0, 0, -1))),
       call("x0.movedim((0, 1), (2, 0))", {input({2, 3, 4})}, LEVIN_CALL(movedim(x0, Axes{0, 1}, Axes{2, 0}))),
       call("x0.swapaxes(0, 2)", {input({2, 3, 4})}, LEVIN_CALL(swapaxes(x0, 0, 2))),
       fixed(call("x0.unflatten(1, (2, -1))", {input({2, 6, 3})}, LEVIN_CALL(unflatten(x0, 1, {2, -1})))),
       call("x0.ravel()", {input({2, 3})}, LEVIN_CALL(ravel(x0))),
       call("torch.atleast_3d(x0)", {input({4})}, LEVIN_CALL(atleast_3d(x0))),
       call("torch.atleast_3d(x0)", {input({2, 4})}, LEVIN_CALL(atleast_3d(x0))),
       call("x0.roll(2)", {input({3, 4})}, LEVIN_CALL(roll(x0, {2}))),
       call("x0.roll((-1, 5), (0, 1))", {input({3, 4})}, LEVIN_CALL(roll(x0, {-1, 5}, Axes{0, 1}))),
       call("x0.rot90()", {input({3, 4})}, LEVIN_CALL(rot90(x0))),
       call("x0.rot90(2)", {input({3, 4})}, LEVIN_CALL(rot90(x0, 2))),
       call("x0.rot90(-1, (2, 0))", {input({3, 2, 4})}, LEVIN_CALL(rot90(x0, -1, {2, 0}))),
       call("x0.fliplr()", {input({3, 4})}, LEVIN_CALL(fliplr(x0))),
       call("x0.flipud()", {input({3, 4})}, LEVIN_CALL(flipud(x0))),
       call("x0.tensor_split(3)", {input({7, 2})}, LEVIN_CALL(tensor_split(x0, 3))),
       call("x0.tensor_split((1, 4), 1)", {input({2, 6})}, LEVIN_CALL(tensor_split(x0, std::vector<int64_t>{1, 4}, 1))),
       fixed(call("F.pixel_shuffle(x0, 2)", {input({2, 8, 2, 3})}, LEVIN_CALL(pixel_shuffle(x0, 2)))),
       fixed(call("F.pixel_unshuffle(x0, 2)", {input({2, 4, 6})}, LEVIN_CALL(pixel_unshuffle(x0, 2)))),
       fixed(call("F.channel_shuffle(x0, 2)", {input({2, 6, 2, 2})}, LEVIN_CALL(channel_shuffle(x0, 2))))});
  c.tolerance = {};
  return with_errors(c, {{"[roll] 2 shifts for 1 axes",
                          [] {
                            roll(ones({3}), {1, 2}, 0);
                          }},
                         {"[rot90] axes 1 and -1 are the same",
                          [] {
                            rot90(ones({2, 3}), 1, {1, -1});
                          }},
                         {"[repeat] 1 counts for x of (2, 3)",
                          [] {
                            repeat(ones({2, 3}), {2});
                          }},
                         {"[pixel_shuffle] (3, 2, 2) does not fit the factor 2",
                          [] {
                            pixel_shuffle(ones({3, 2, 2}), 2);
                          }},
                         {"[hstack] the list of tensors is empty", [] { hstack({}); }},
                         {"[meshgrid] needs vectors, one is (2, 2)",
                          [] {
                            meshgrid({ones({2, 2})});
                          }},
                         {"[tensor_split] 0 sections", [] { tensor_split(ones({2}), 0); }},
                         {"[movedim] 1 axes cannot move to 2 places",
                          [] {
                            movedim(ones({2, 3}), 0, Axes{0, 1});
                          }},
                         {"[repeat_interleave] counts is (2,), but axis 0 of (3,) needs (3,)", [] {
                            repeat_interleave(ones({3}), tensor<int64_t>({1, 2}), 0);
                          }}});
}

OpCase diagonals() {
  return with_errors(
      composition("diagonals",
                  {call("x0.diagonal()", {input({3, 4})}, LEVIN_CALL(diagonal(x0))),
                   call("x0.diagonal(-1, 0, 2)", {input({3, 2, 4})}, LEVIN_CALL(diagonal(x0, -1, 0, 2))),
                   call("x0.diagonal(2)", {input({3, 4})}, LEVIN_CALL(diagonal(x0, 2))),
                   call("torch.diag_embed(x0)", {input({2, 3})}, LEVIN_CALL(diag_embed(x0))),
                   call("torch.diag_embed(x0, 1, 0, 2)", {input({2, 3})}, LEVIN_CALL(diag_embed(x0, 1, 0, 2))),
                   call("torch.diag_embed(x0, -2, 2, 0)", {input({2, 3})}, LEVIN_CALL(diag_embed(x0, -2, 2, 0))),
                   call("torch.diag(x0, 1)", {input({3})}, LEVIN_CALL(diag(x0, 1))),
                   call("torch.diag(x0, -1)", {input({3, 3})}, LEVIN_CALL(diag(x0, -1))),
                   call("torch.diagflat(x0)", {input({2, 2})}, LEVIN_CALL(diagflat(x0))),
                   call("torch.trace(x0)", {input({3, 4})}, LEVIN_CALL(trace(x0)), 3)}),
      {{"[diagonal] (3,) has no diagonal", [] { diagonal(ones({3})); }},
       {"[diag] needs a vector or a matrix, x is (1, 2, 3)",
        [] {
          diag(ones({1, 2, 3}));
        }},
       {"[trace] needs a matrix, x is (3,)", [] { trace(ones({3})); }}});
}

OpCase selecting() {
  const InputSpec one = index_input({4}, 3), line = index_input({2, 3}, 12);
  InputSpec order = index_input({3}, 1);  // each position once
  order.values = [](int64_t i, int64_t, Generator&) { return static_cast<double>((i * 2) % 3); };
  order.rearrange = false;
  InputSpec mask = bool_input({2, 3});
  mask.values = cycle({1, 0, 1, 1, 0, 0});
  mask.rearrange = false;
  return with_errors(
      composition(
          "selecting",
          {fixed(call("torch.take(x0, x1)", {input({3, 4}), line}, LEVIN_CALL(take(x0, x1)))),
           fixed(call("torch.take_along_dim(x0, x1, 1)", {input({1, 4}), index_input({3, 2}, 4)},
                      LEVIN_CALL(take_along_dim(x0, x1, 1)))),
           fixed(call("torch.take_along_dim(x0, x1)", {input({3, 4}), line}, LEVIN_CALL(take_along_dim(x0, x1)))),
           fixed(call("x0.index_fill(0, x1, 2.5)", {input({3, 4}), one}, LEVIN_CALL(index_fill(x0, 0, x1, 2.5)))),
           fixed(call("x0.index_copy(1, x1, x2)", {input({2, 4}), order, input({2, 3})},
                      LEVIN_CALL(index_copy(x0, 1, x1, x2)))),
           fixed(call("x0.masked_scatter(x1, x2)", {input({2, 3}), mask, input({5})},
                      LEVIN_CALL(masked_scatter(x0, x1, x2)))),
           fixed(call("x0.scatter_reduce(1, x1, x2, 'sum')", {input({2, 3}), index_input({2, 5}, 3), input({2, 5})},
                      LEVIN_CALL(scatter_reduce(x0, 1, x1, x2, ScatterReduce::sum)), 5)),
           fixed(call("x0.scatter_reduce(1, x1, x2, 'mean')", {input({2, 3}), index_input({2, 5}, 3), input({2, 5})},
                      LEVIN_CALL(scatter_reduce(x0, 1, x1, x2, ScatterReduce::mean)), 5)),
           fixed(call("x0.scatter_reduce(1, x1, x2, 'mean', include_self=False)",
                      {input({2, 3}), index_input({2, 5}, 3), input({2, 5})},
                      LEVIN_CALL(scatter_reduce(x0, 1, x1, x2, ScatterReduce::mean, false)), 5)),
           fixed(call("x0.scatter_reduce(0, x1, x2, 'prod')", {input({3, 2}), index_input({4, 2}, 3), input({4, 2})},
                      LEVIN_CALL(scatter_reduce(x0, 0, x1, x2, ScatterReduce::prod)), 5)),
           fixed(call("x0.scatter_reduce(0, x1, x2, 'amax')",
                      {input({3, 2}, distinct()), index_input({4, 2}, 3), input({4, 2}, distinct(0.3))},
                      LEVIN_CALL(scatter_reduce(x0, 0, x1, x2, ScatterReduce::amax)))),
           fixed(call("x0.scatter_reduce(0, x1, x2, 'amin', include_self=False)",
                      {input({3, 2}, distinct()), index_input({4, 2}, 3), input({4, 2}, distinct(0.3))},
                      LEVIN_CALL(scatter_reduce(x0, 0, x1, x2, ScatterReduce::amin, false))))}),
      {{"[masked_scatter] the mask selects 3 elements, and source has 2",
        [] { masked_scatter(zeros({3}), ones({3}, kBool), ones({2})); }},
       {"[take_along_dim] index is (2,), and x of (2, 2) has another number of axes",
        [] { take_along_dim(ones({2, 2}), zeros({2}, kInt64), 0); }},
       {"[index_copy] source is (2,), but 3 positions along axis 0 of (4,) need (3,)",
        [] { index_copy(ones({4}), 0, zeros({3}, kInt64), ones({2})); }},
       {"[scatter_reduce] source (2,) does not cover index (3,)",
        [] { scatter_reduce(ones({4}), 0, zeros({3}, kInt64), ones({2}), ScatterReduce::sum); }}});
}

OpCase padding_modes() {
  return with_errors(
      composition("pad_modes", {fixed(call("F.pad(x0, (2, 1), mode='reflect')", {input({1, 2, 4})},
                                           LEVIN_CALL(pad(x0, {2, 1}, PadMode::reflect)))),
                                fixed(call("F.pad(x0, (1, 2, 3, 1), mode='reflect')", {input({1, 1, 4, 3})},
                                           LEVIN_CALL(pad(x0, {1, 2, 3, 1}, PadMode::reflect)))),
                                call("F.pad(x0, (3, 5), mode='replicate')", {input({1, 2, 4})},
                                     LEVIN_CALL(pad(x0, {3, 5}, PadMode::replicate))),
                                call("F.pad(x0, (2, -1, 0, 3), mode='replicate')", {input({1, 1, 4, 3})},
                                     LEVIN_CALL(pad(x0, {2, -1, 0, 3}, PadMode::replicate))),
                                fixed(call("F.pad(x0, (3, 2), mode='circular')", {input({1, 2, 4})},
                                           LEVIN_CALL(pad(x0, {3, 2}, PadMode::circular)))),
                                call("F.pad(x0, (1, 2), value=1.5)", {input({2, 4})},
                                     LEVIN_CALL(pad(x0, {1, 2}, PadMode::constant, 1.5)))}),
      {{"[pad] pads (4, 0) of axis 0 do not fit its size 4 in reflect mode",
        [] {
          pad(ones({4}), {4, 0}, PadMode::reflect);
        }},
       {"[pad] pads (5, 0) of axis 0 do not fit its size 4 in circular mode",
        [] {
          pad(ones({4}), {5, 0}, PadMode::circular);
        }},
       {"[pad] 3 numbers for x of (4,)", [] {
          pad(ones({4}), {1, 2, 3}, PadMode::reflect);
        }}});
}

OpCase triangles() {
  return without_gradient(composition(
      "triangle_indices",
      {call("torch.stack([torch.tril_indices(3, 4, 1).sum(1), torch.triu_indices(4, 3, -1).sum(1)])", {constant({2})},
            LEVIN_CALL(stack({sum(tril_indices(3, 4, 1), 1), sum(triu_indices(4, 3, -1), 1)}).to(x0.device())))}));
}

}  // namespace

std::vector<OpCase> rearrange_cases() {
  return {with_draws(joining(), joining_draws()),
          with_draws(repeating(), repeating_draws()),
          with_draws(moving(), moving_draws()),
          with_draws(diagonals(), diagonal_draws()),
          with_draws(selecting(), selecting_draws()),
          with_draws(padding_modes(), padding_draws()),
          triangles()};
}

}  // namespace levin::test
