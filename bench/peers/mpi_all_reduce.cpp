// MPI's side of tools/all_reduce.py: benchmarks MPI_Allreduce over the ranks of one host, by size.
// usage: mpirun -n N mpi_all_reduce        prints: mpi  bytes  ms  GB/s

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (const long bytes : {4L << 10, 64L << 10, 256L << 10, 1L << 20, 4L << 20, 16L << 20, 40'000'000L}) {
    const int calls = static_cast<int>(std::clamp(100e6 / static_cast<double>(bytes), 3.0, 100.0));
    std::vector<float> data(static_cast<std::size_t>(bytes / 4));
    double best = 1e9;
    for (int round = 0; round <= 5; ++round) {  // the first round is the warm-up
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      for (int i = 0; i < calls; ++i) {
        MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      }
      if (round > 0) best = std::min(best, (MPI_Wtime() - start) / calls);
    }
    if (rank == 0) std::printf("mpi %ld %.4f %.3f\n", bytes, 1e3 * best, 1e-9 * static_cast<double>(bytes) / best);
  }
  MPI_Finalize();
  return 0;
}
