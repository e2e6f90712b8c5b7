"""What a model is: manifests, adapters to the inference libraries, and the engines that run on them."""
