// Runs the program of docs/exchange.md: levin_client_exchange_page FOLDER prints the outputs for an input of ones.
#include "interop/exchange_page.h"

int main(int, char** argv) {
  const levin::Tensor y = exchange_page::exchange(argv[1], levin::ones({1, 4}));
  std::cout << y[0][0].item<float>() << ' ' << y[0][1].item<float>() << '\n';
}
