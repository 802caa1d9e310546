"sha256-ldsxiwSw2ZodcnWi9OqvllOiO3d0uXR55XAz8p+QItk="
