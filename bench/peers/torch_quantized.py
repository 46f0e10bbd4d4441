"""Times PyTorch's Linear in float32 and with dynamic int8 quantization, alternating; see bench/quantized/layers.cpp."""
import statistics
import time
import warnings

import torch

warnings.filterwarnings("ignore")  # of the quantization functions' successor
torch.set_num_threads(1)
torch.manual_seed(0)
with torch.inference_mode():
    for width in (1024, 4096):
        for batch in (1, 64):
            layer = torch.nn.Sequential(torch.nn.Linear(width, width))
            layers = layer, torch.ao.quantization.quantize_dynamic(layer, {torch.nn.Linear}, torch.qint8)
            x, calls, times = torch.randn(batch, width), max(1, 2**26 // (width * width * batch)), ([], [])
            for turn in range(15):
                for net, list_ in zip(layers, times):
                    start = time.thread_time()
                    for _ in range(calls):
                        net(x)
                    if turn > 0:
                        list_.append((time.thread_time() - start) / calls * 1e6)
            print(f"Linear {width} x {width}", batch, *(f"{statistics.median(t):.1f}" for t in times), sep="\t")
