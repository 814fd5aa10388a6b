// The platform of the file that TOPOLANE_PLATFORM names (platform.hpp), for smpirun.
#include "platform.hpp"

#include <cstdlib>
#include <fstream>

extern "C" void load_platform(const simgrid::s4u::Engine&);

void load_platform(const simgrid::s4u::Engine&)
{
  const char* name = std::getenv("TOPOLANE_PLATFORM");
  if (name == nullptr)
    throw std::runtime_error("TOPOLANE_PLATFORM names no file");
  std::ifstream file(name);
  platform::build(file);
}
